//! Expressions as a tree that remembers where everything stands, for the words of the type check.
//!
//! The engine has its own parser, which has accepted the text before it comes here; that one says
//! neither where a node stood nor which macro it came from. What this one does not understand is
//! not checked.

mod tokens;

use self::tokens::{Token, tokens};

/// A part of an expression, and the place where an error about it points.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) at: usize,
    pub(super) form: Form,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    Bool,
    /// No value: it is written in hexadecimal, or too large.
    Int(Option<i64>),
    Uint,
    Double,
    /// How many characters it has.
    Text(usize),
    /// How many bytes it has.
    Bytes(usize),
    Null,
    Name(String),
    /// `operand.field`, or `operand.?field`.
    Select {
        operand: Box<Node>,
        field: String,
        optional: bool,
    },
    /// `operand[index]`, or `operand[?index]`.
    Index {
        operand: Box<Node>,
        index: Box<Node>,
        optional: bool,
    },
    /// `function(…)` or `target.function(…)`.
    Call {
        target: Option<Box<Node>>,
        function: String,
        arguments: Vec<Node>,
    },
    /// `name{field: value}`.
    Struct {
        name: String,
        /// Where the colon stands, the field, and its value.
        fields: Vec<(usize, String, Node)>,
    },
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    /// `!x` or `-x`.
    Unary(&'static str, Box<Node>),
    Binary(&'static str, Box<Node>, Box<Node>),
    Choice(Box<[Node; 3]>),
}

/// The tree of `text`; `None` if there is something in it that is not understood.
pub(super) fn parse(text: &str) -> Option<Node> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0 };
    let node = parser.expression()?;
    (parser.next == parser.tokens.len()).then_some(node)
}

/// The dotted name that a node is, if it is one.
fn path(node: &Node) -> Option<String> {
    match &node.form {
        Form::Name(name) => Some(name.clone()),
        Form::Select { operand, field, optional: false } => Some(format!("{}.{field}", path(operand)?)),
        _ => None,
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
}

/// From loosest to tightest.
const LEVELS: [&[&str]; 5] =
    [&["||"], &["&&"], &["==", "!=", "<", "<=", ">", ">=", "@in"], &["+", "-"], &["*", "/", "%"]];

impl Parser {
    /// Takes a sign, if it is next.
    fn sign(&mut self, wanted: &str) -> Option<usize> {
        match self.tokens.get(self.next) {
            Some((at, Token::Sign(sign))) if *sign == wanted => {
                self.next += 1;
                Some(*at)
            }
            _ => None,
        }
    }

    fn name(&mut self) -> Option<String> {
        let (_, Token::Name(name)) = self.tokens.get(self.next)? else { return None };
        self.next += 1;
        Some(name.clone())
    }

    fn expression(&mut self) -> Option<Node> {
        let condition = self.level(0)?;
        let Some(at) = self.sign("?") else { return Some(condition) };
        let yes = self.level(0)?;
        self.sign(":")?;
        let no = self.expression()?;
        Some(Node { at, form: Form::Choice(Box::new([condition, yes, no])) })
    }

    fn level(&mut self, level: usize) -> Option<Node> {
        let Some(signs) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1)?;
        while let Some((sign, at)) = signs.iter().find_map(|sign| Some((*sign, self.sign(sign)?))) {
            let right = self.level(level + 1)?;
            left = Node { at, form: Form::Binary(sign, Box::new(left), Box::new(right)) };
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Node> {
        for sign in ["!", "-"] {
            if let Some(at) = self.sign(sign) {
                let operand = self.unary()?;
                return Some(Node { at, form: Form::Unary(sign, Box::new(operand)) });
            }
        }
        self.member()
    }

    fn member(&mut self) -> Option<Node> {
        let mut node = self.primary()?;
        loop {
            if let Some(at) = self.sign(".") {
                let optional = self.sign("?").is_some();
                let name = self.name()?;
                let operand = Box::new(node);
                node = match (optional, self.sign("(")) {
                    (true, Some(_)) => return None,
                    (false, Some(at)) => {
                        let arguments = self.until(")")?;
                        Node { at, form: Form::Call { target: Some(operand), function: name, arguments } }
                    }
                    (_, None) => Node { at, form: Form::Select { operand, field: name, optional } },
                };
                if let Some(path) = path(&node).filter(|_| self.is_next("{")) {
                    node = self.structure(path)?;
                }
            } else if let Some(at) = self.sign("[") {
                let optional = self.sign("?").is_some();
                let index = Box::new(self.expression()?);
                self.sign("]")?;
                node = Node { at, form: Form::Index { operand: Box::new(node), index, optional } };
            } else {
                return Some(node);
            }
        }
    }

    fn primary(&mut self) -> Option<Node> {
        let (at, token) = self.tokens.get(self.next)?.clone();
        self.next += 1;
        match token {
            Token::Literal(form) => Some(Node { at, form }),
            Token::Name(name) => match self.sign("(") {
                Some(at) => {
                    let arguments = self.until(")")?;
                    Some(Node { at, form: Form::Call { target: None, function: name, arguments } })
                }
                None if self.is_next("{") => self.structure(name),
                None => Some(Node { at, form: Form::Name(name) }),
            },
            Token::Sign("(") => {
                let node = self.expression()?;
                self.sign(")")?;
                Some(node)
            }
            Token::Sign("[") => Some(Node { at, form: Form::List(self.until("]")?) }),
            Token::Sign("{") => Some(Node { at, form: Form::Map(self.entries()?) }),
            Token::Sign(_) => None,
        }
    }

    /// Expressions with commas between them, up to a sign.
    fn until(&mut self, end: &str) -> Option<Vec<Node>> {
        let mut found = Vec::new();
        while self.sign(end).is_none() {
            found.push(self.expression()?);
            if self.sign(",").is_none() {
                self.sign(end)?;
                break;
            }
        }
        Some(found)
    }

    fn is_next(&self, wanted: &str) -> bool {
        matches!(self.tokens.get(self.next), Some((_, Token::Sign(sign))) if *sign == wanted)
    }

    fn structure(&mut self, name: String) -> Option<Node> {
        let at = self.sign("{")?;
        let mut fields = Vec::new();
        while self.sign("}").is_none() {
            let field = self.name()?;
            let colon = self.sign(":")?;
            fields.push((colon, field, self.expression()?));
            if self.sign(",").is_none() {
                self.sign("}")?;
                break;
            }
        }
        Some(Node { at, form: Form::Struct { name, fields } })
    }

    fn entries(&mut self) -> Option<Vec<(Node, Node)>> {
        let mut found = Vec::new();
        while self.sign("}").is_none() {
            let key = self.expression()?;
            self.sign(":")?;
            found.push((key, self.expression()?));
            if self.sign(",").is_none() {
                self.sign("}")?;
                break;
            }
        }
        Some(found)
    }
}
