//! The page's words, in English and Chinese.

use serde::Serialize;

/// A language of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    Chinese,
}

impl Language {
    /// As asked for by a cookie, or else by the browser.
    pub(crate) fn of(cookies: &str, accepts: &str) -> Self {
        let chosen = cookies.split(';').find_map(|cookie| cookie.trim().strip_prefix("windlass-lang="));
        match chosen {
            Some("zh") => return Self::Chinese,
            Some("en") => return Self::English,
            _ => {}
        }
        let weighed = accepts.split(',').filter_map(|part| {
            let mut parts = part.split(';');
            let name = parts.next()?.trim().to_ascii_lowercase();
            let weight = parts.find_map(|part| part.trim().strip_prefix("q=")?.parse::<f32>().ok());
            let language = match name.split('-').next()? {
                "zh" => Self::Chinese,
                "en" => Self::English,
                _ => return None,
            };
            Some((language, weight.unwrap_or(1.0)))
        });
        // The first of the heaviest.
        let best = weighed.fold(None, |best: Option<(Self, f32)>, next| match best {
            Some(known) if known.1 >= next.1 => Some(known),
            _ => Some(next),
        });
        best.map_or(Self::English, |(language, _)| language)
    }

    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh-CN",
        }
    }

    pub(crate) fn words(self) -> &'static Words {
        match self {
            Self::English => &ENGLISH,
            Self::Chinese => &CHINESE,
        }
    }
}

macro_rules! words {
    ($($name:ident: $english:literal, $chinese:literal;)*) => {
        /// Every word of the page.
        #[derive(Debug, Serialize)]
        pub(crate) struct Words { $(pub(crate) $name: &'static str,)* }
        static ENGLISH: Words = Words { $($name: $english,)* };
        static CHINESE: Words = Words { $($name: $chinese,)* };
    };
}

words! {
    objects: "Objects", "对象";
    reconciles: "Reconciles", "调谐";
    time: "Changes", "变更";
    live: "live", "实时";
    connecting: "connecting", "连接中";
    lost: "connection lost, trying again", "连接已断开，正在重试";
    search: "Filter by name", "按名称筛选";
    all_kinds: "All kinds", "所有类型";
    all_namespaces: "All namespaces", "所有命名空间";
    any_health: "Any health", "任意状态";
    everything: "Show everything", "显示全部";
    only_trees: "Workloads", "工作负载";
    nothing: "Nothing matches.", "没有匹配的对象。";
    empty: "Nothing here yet.", "这里还没有对象。";
    try_this: "Create something with kubectl and it appears here.", "用 kubectl 创建对象，它会立即出现在这里。";
    overview: "Overview", "概览";
    yaml: "YAML", "YAML";
    edit: "Edit", "编辑";
    history: "History", "历史";
    logs: "Logs", "日志";
    events: "Events", "事件";
    no_events: "No events.", "没有事件。";
    conditions: "Conditions", "状况";
    no_conditions: "It reports no conditions.", "该对象没有报告状况。";
    owners: "Owned by", "属主";
    created: "Created", "创建于";
    namespace: "Namespace", "命名空间";
    close: "Close", "关闭";
    apply: "Apply", "应用";
    delete: "Delete", "删除";
    restore: "Restore this version", "恢复此版本";
    valid: "The server accepts this.", "服务器接受此内容。";
    checking: "Asking the server …", "正在询问服务器……";
    applied: "Applied.", "已应用。";
    unchanged: "Nothing is changed yet.", "尚未修改。";
    sure: "Click again to confirm", "再次点击以确认";
    done: "Done.", "完成。";
    gone: "This object is gone.", "该对象已不存在。";
    managers: "Who owns which line", "每一行由谁管理";
    nobody: "nobody", "无";
    masked: "Values are hidden.", "值已隐藏。";
    reveal: "Show them", "显示";
    versions: "Versions", "版本";
    from_beginning: "The whole history of the object.", "这是该对象的完整历史。";
    not_from_beginning: "Older versions are no longer kept by the cluster.", "集群已不再保留更早的版本。";
    no_difference: "No difference.", "没有差异。";
    why: "Why is this field so?", "这个字段为什么是这样？";
    field: "Field", "字段";
    written_by: "written by", "写入者";
    compare: "Compared with the version before", "与前一版本相比";
    container: "Container", "容器";
    no_logs: "No log.", "没有日志。";
    no_runs: "No runs seen yet. They are recorded while this page is open.", "尚未看到调谐。页面打开期间会进行记录。";
    no_operators: "No operator is connected: runs are those of operators built with Windlass.", "没有连接任何 Operator：这里显示用 Windlass 构建的 Operator 的调谐。";
    slowest: "Slowest", "最慢";
    queue: "Queue", "队列";
    queue_empty: "Nothing waits.", "没有等待项。";
    latest: "Latest", "最近";
    woken: "Woken by", "触发者";
    not_seen: "a start, a retry or a resync", "启动、重试或定期同步";
    waited: "Waited", "等待";
    ran: "Ran", "运行";
    outcome: "Outcome", "结果";
    next: "Next try in", "下次重试";
    requests: "Requests", "请求";
    no_requests: "It made no request.", "没有发出请求。";
    wrote: "What it wrote", "写入内容";
    sent: "Sent", "发送内容";
    lines: "Log", "日志";
    run_gone: "This run is no longer kept.", "这次调谐的记录已不再保留。";
    object: "Object", "对象";
    failures: "failures", "次失败";
    ready: "ready", "就绪";
    waiting: "waiting", "等待中";
    running: "running", "运行中";
    success: "done", "完成";
    requeue: "again later", "稍后再次";
    error: "failed", "失败";
    terminal: "failed, waits for a change", "失败，等待变更";
    panic: "panicked", "崩溃";
    timeout: "timed out", "超时";
    changes_seen: "Everything that happens, newest first, from as far back as the cluster still knows.", "发生的一切，最新的在前，最早到集群仍保留的历史。";
    then: "Show the cluster as it was", "显示集群当时的样子";
    now: "Now", "现在";
    past: "You see the cluster as it was at revision", "您看到的是集群在此修订版本时的样子：";
    back: "Back to now", "回到现在";
    past_unknown: "no longer known", "已不再保留";
    made: "created", "已创建";
    changed: "changed", "已变更";
    deleted: "deleted", "已删除";
    known: "as first known", "最早已知";
    by: "by", "由";
    faults: "Faults", "故障";
    faults_pod: "What goes wrong in this Pod", "让此 Pod 出错";
    faults_node: "What goes wrong with this node", "让此节点出错";
    faults_lease: "Expire the lease: its holder loses it", "使租约过期：持有者将失去它";
    faults_account: "What this account meets when it uses the API", "此帐户使用 API 时会遇到什么";
    fault_none: "Well again", "恢复正常";
    read_only: "read-only", "只读";
    unreadable: "kinds cannot be read", "种类型无法读取";
    language: "中文", "English";
    skip: "Skip to the objects", "跳到对象列表";
    keys: "↑ ↓ move · ← → fold · Enter opens · / filters · Esc closes", "↑ ↓ 移动 · ← → 折叠 · Enter 打开 · / 筛选 · Esc 关闭";
    current: "Current", "正常";
    in_progress: "In progress", "进行中";
    failed: "Failed", "失败";
    terminating: "Terminating", "正在终止";
    unknown: "Unknown", "未知";
    not_found: "Not found", "未找到";
    revision: "revision", "修订版本";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browser_says_which_language_and_a_cookie_says_better() {
        use Language::{Chinese, English};
        let table = [
            ("", "", English),
            ("", "zh-CN,zh;q=0.9,en;q=0.8", Chinese),
            ("", "en-GB,en;q=0.9,zh;q=0.8", English),
            ("", "de,zh;q=0.5,en;q=0.7", English),
            ("", "fr", English),
            ("a=b; windlass-lang=zh", "en", Chinese),
            ("windlass-lang=en", "zh", English),
            ("windlass-lang=xx", "zh", Chinese),
        ];
        for (cookies, accepts, expected) in table {
            assert_eq!(Language::of(cookies, accepts), expected, "{cookies} {accepts}");
        }
    }

    #[test]
    fn every_word_is_there_in_both_languages() {
        let map = |words: &Words| serde_json::to_value(words).unwrap().as_object().unwrap().clone();
        let (english, chinese) = (map(&ENGLISH), map(&CHINESE));
        for (name, word) in &english {
            let other = chinese[name].as_str().unwrap();
            assert!(!word.as_str().unwrap().is_empty() && !other.is_empty(), "{name}");
            let is_chinese = other.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
            assert!(is_chinese || ["yaml", "language"].contains(&name.as_str()), "{name} is not translated");
        }
    }
}
