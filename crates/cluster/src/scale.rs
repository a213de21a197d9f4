//! How is a count written so that no other client's is overwritten? As a JSON patch that names the object and
//! the count it was decided upon: if either is another by now, the API server answers 422 and changes
//! nothing.

use json_patch::{Patch, PatchOperation};
use serde_json::{Value, json};
use vocabulary::PodCount;

/// The patch of the `scale` subresource.
pub fn patch(uid: &str, from: PodCount, to: PodCount) -> Patch {
    // Kubernetes leaves a count of zero out, and a test of what is not there fails.
    let unchanged = match from {
        PodCount::ZERO => json!({"op": "test", "path": "/spec", "value": {}}),
        from => json!({"op": "test", "path": "/spec/replicas", "value": from.value()}),
    };
    let operations = [
        json!({"op": "test", "path": "/metadata/uid", "value": uid}),
        unchanged,
        json!({"op": "add", "path": "/spec/replicas", "value": to.value()}),
    ];
    Patch(operations.into_iter().map(operation).collect())
}

fn operation(operation: Value) -> PatchOperation {
    serde_json::from_value(operation).expect("what stands above are operations")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(uid: &str, replicas: u32) -> Value {
        let spec = if replicas == 0 { json!({}) } else { json!({"replicas": replicas}) };
        json!({"metadata": {"name": "hello", "uid": uid}, "spec": spec, "status": {"replicas": 9}})
    }

    #[test]
    fn a_count_is_written_only_over_the_one_it_was_decided_upon() {
        for (found, from, to, expected) in [
            (0, 0, 3, Some(3)),
            (3, 3, 0, Some(0)),
            (3, 3, 5, Some(5)),
            (2, 3, 5, None),
            (1, 0, 3, None),
            (0, 2, 1, None),
        ] {
            let mut object = scale("u1", found);
            let patched =
                json_patch::patch(&mut object, &patch("u1", PodCount::new(from), PodCount::new(to)));
            let written = patched.is_ok().then(|| object["spec"]["replicas"].as_u64());
            assert_eq!(written, expected.map(Some), "{found} found, {from} → {to}");
        }
    }

    #[test]
    fn another_object_of_the_same_name_is_left_alone() {
        let mut object = scale("u2", 1);
        let patch = patch("u1", PodCount::new(1), PodCount::new(2));
        json_patch::patch(&mut object, &patch).expect_err("another uid");
    }
}
