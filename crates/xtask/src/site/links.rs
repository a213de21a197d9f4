//! Where do links of a page lead on the site? Pages link to manifests and sources beside `docs/`, which are
//! in the repository and not on the site. The page README.md is index.html there.

/// The text of a page, with links to files outside of `docs/` as links into the repository, and those to a
/// README as mdBook calls it.
pub(super) fn for_site(page: &str, text: &str, repository: &str) -> String {
    let folder = page.rsplit_once('/').map_or("docs".to_owned(), |(folder, _)| format!("docs/{folder}"));
    let mut parts = text.split("](");
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        written.push_str("](");
        let (target, rest) = part.split_at(part.find(')').unwrap_or(0));
        written.push_str(&changed(&folder, target, repository).unwrap_or_else(|| target.to_owned()));
        written.push_str(rest);
    }
    written
}

/// The target of a link on the site, if it is another one there.
fn changed(folder: &str, target: &str, repository: &str) -> Option<String> {
    if target.is_empty() || target.starts_with(['#', '/']) || target.contains(':') {
        return None;
    }
    let (path, fragment) = target.split_at(target.find('#').unwrap_or(target.len()));
    let whole = resolved(folder, path);
    if whole.starts_with("docs/") {
        let beside = path.strip_suffix("README.md")?;
        return Some(format!("{beside}index.md{fragment}"));
    }
    let is_picture = [".png", ".svg", ".webp"].iter().any(|ending| whole.ends_with(ending));
    let kind = if is_picture { "raw" } else { "blob" };
    Some(format!("{repository}/{kind}/main/{whole}{fragment}"))
}

fn resolved(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::for_site;

    #[test]
    fn links_out_of_the_pages_lead_into_the_repository() {
        let text = "a [b](images.md#x) [c](../start/cluster.md) [d](../../deploy/base) ![e](../../tests/e.png) [f](#g) [h](https://h/) [i](../../README.md#j) [k](../README.md#l)";
        let expected = "a [b](images.md#x) [c](../start/cluster.md) [d](R/blob/main/deploy/base) ![e](R/raw/main/tests/e.png) [f](#g) [h](https://h/) [i](R/blob/main/README.md#j) [k](../index.md#l)";
        assert_eq!(for_site("tasks/a.md", text, "R"), expected);
        assert_eq!(
            for_site("a.md", "[b](../README.md) [c](d.md", "R"),
            "[b](R/blob/main/README.md) [c](d.md"
        );
    }
}
