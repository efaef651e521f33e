//! Label selectors as objects write them: `matchLabels` and `matchExpressions`.

pub(crate) use windlass_apimachinery::labels::LabelSelector;
