//! Makes a case that differs as small as it can be and still differ in the same way.

use serde_json::Value;

use super::steps::Case;

/// Whether a smaller case still shows the difference.
pub(super) trait Shows {
    async fn shows(&mut self, case: &Case) -> bool;
}

/// The smallest case found: fewest requests, then fewest fields.
pub(super) async fn shrink(mut case: Case, judge: &mut impl Shows) -> Case {
    // From the end, so that what is needed first is tried last.
    let mut index = case.steps.len();
    while index > 0 {
        index -= 1;
        if case.steps[index].needed {
            continue;
        }
        let mut smaller = case.clone();
        smaller.steps.remove(index);
        if !smaller.steps.is_empty() && judge.shows(&smaller).await {
            case = smaller;
        }
    }
    if case.managed {
        let smaller = Case { managed: false, ..case.clone() };
        if judge.shows(&smaller).await {
            case = smaller;
        }
    }
    for index in 0..case.steps.len() {
        if let Some(query) = case.steps[index].path.find('?') {
            let mut smaller = case.clone();
            smaller.steps[index].path.truncate(query);
            if case.steps[index].verb != "APPLY" && judge.shows(&smaller).await {
                case = smaller;
            }
        }
        if !case.steps[index].needed {
            case = fields(case, index, judge).await;
        }
    }
    case
}

async fn fields(mut case: Case, index: usize, judge: &mut impl Shows) -> Case {
    let mut place = 0;
    loop {
        let Some(body) = &case.steps[index].body else { return case };
        let mut places = Vec::new();
        leaves(body, &mut Vec::new(), &mut places);
        // The outermost first: a whole branch at once.
        places.sort_by_key(Vec::len);
        let Some(path) = places.get(place) else { return case };
        let mut smaller = case.clone();
        remove(smaller.steps[index].body.as_mut().unwrap(), path);
        if judge.shows(&smaller).await {
            case = smaller;
        } else {
            place += 1;
        }
    }
}

fn leaves(value: &Value, path: &mut Vec<String>, out: &mut Vec<Vec<String>>) {
    let mut visit = |key: String, inner: &Value| {
        path.push(key);
        out.push(path.clone());
        leaves(inner, path, out);
        path.pop();
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, inner)| visit(key.clone(), inner)),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(index, inner)| visit(index.to_string(), inner));
        }
        _ => {}
    }
}

fn remove(value: &mut Value, path: &[String]) {
    let (last, before) = path.split_last().unwrap();
    let mut inner = value;
    for key in before {
        inner = match inner {
            Value::Object(map) => map.get_mut(key).unwrap(),
            Value::Array(list) => &mut list[key.parse::<usize>().unwrap()],
            _ => unreachable!("a path leads through maps and lists"),
        };
    }
    match inner {
        Value::Object(map) => {
            map.remove(last);
        }
        Value::Array(list) => {
            list.remove(last.parse().unwrap());
        }
        _ => {}
    }
}
