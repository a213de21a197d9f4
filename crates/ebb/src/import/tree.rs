//! Looking things up in a document, and making one.

use settings::hpa::reading::DocumentNode;

pub(super) fn fields(node: Option<&DocumentNode>) -> &[(String, DocumentNode)] {
    match node {
        Some(DocumentNode::Map(entries)) => entries,
        Some(
            DocumentNode::Null
            | DocumentNode::Boolean(_)
            | DocumentNode::Integer(_)
            | DocumentNode::Float(_)
            | DocumentNode::Text(_)
            | DocumentNode::List(_),
        )
        | None => &[],
    }
}

pub(super) fn at<'n>(node: &'n DocumentNode, path: &[&str]) -> Option<&'n DocumentNode> {
    path.iter().try_fold(node, |node, name| {
        fields(Some(node)).iter().find(|(key, _)| key == name).map(|(_, value)| value)
    })
}

pub(super) fn text_at<'n>(node: &'n DocumentNode, path: &[&str]) -> Option<&'n str> {
    if let Some(DocumentNode::Text(text)) = at(node, path) { Some(text) } else { None }
}

pub(super) fn number_at(node: &DocumentNode, path: &[&str]) -> Option<i64> {
    if let Some(DocumentNode::Integer(number)) = at(node, path) { Some(*number) } else { None }
}

pub(super) fn text(value: &str) -> DocumentNode {
    DocumentNode::Text(value.to_owned())
}

pub(super) fn map(entries: &[(&str, DocumentNode)]) -> DocumentNode {
    DocumentNode::Map(entries.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}
