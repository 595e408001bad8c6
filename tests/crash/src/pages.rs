//! Pages of lists, read strictly. A page without its fields would otherwise count as the end of its list.

use serde_json::Value;

use crate::Result;

/// Reads the items of a page of the gate, and whether another page follows.
pub(crate) fn followed(path: &str, page: &Value) -> Result<(Vec<Value>, bool)> {
    let items = items(path, page, "data")?;
    let has_more = flag(path, page, "has_more")?;
    if has_more && items.is_empty() {
        return Err(malformed(path, page, "`has_more` without an item").into());
    }
    Ok((items, has_more))
}

/// Reads the items of a page of the pools, which are in the field `name`, and the cursor of the next page.
pub(crate) fn with_cursor(
    path: &str,
    page: &Value,
    name: &str,
) -> Result<(Vec<Value>, Option<String>)> {
    let items = items(path, page, name)?;
    let next = match page.get("nextCursor") {
        Some(Value::String(cursor)) => Some(cursor.clone()),
        Some(Value::Null) => None,
        _ => return Err(malformed(path, page, "no `nextCursor`").into()),
    };
    let has_more = flag(path, page, "hasMore")?;
    if has_more != next.is_some() || has_more && items.is_empty() {
        let contradiction = "`hasMore`, `nextCursor` and the items contradict each other";
        return Err(malformed(path, page, contradiction).into());
    }
    Ok((items, next))
}

/// Returns a text field of an object.
pub(crate) fn field(value: &Value, name: &str) -> Option<String> {
    Some(value.get(name)?.as_str()?.to_owned())
}

fn items(path: &str, page: &Value, name: &str) -> Result<Vec<Value>> {
    let items = page.get(name).and_then(Value::as_array);
    let items = items.ok_or_else(|| malformed(path, page, &format!("no list `{name}`")))?;
    Ok(items.clone())
}

fn flag(path: &str, page: &Value, name: &str) -> Result<bool> {
    let flag = page.get(name).and_then(Value::as_bool);
    Ok(flag.ok_or_else(|| malformed(path, page, &format!("no `{name}`")))?)
}

fn malformed(path: &str, page: &Value, why: &str) -> String {
    format!("GET {path}: {why}: {page}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn page_without_its_fields_is_no_end_of_a_list_of_the_gate() {
        let read = |page: Value| followed("/gate_sessions?limit=100", &page);
        let (items, has_more) = read(json!({ "data": [1, 2], "has_more": true })).unwrap();
        assert_eq!((items.len(), has_more), (2, true));
        let (items, has_more) = read(json!({ "data": [], "has_more": false })).unwrap();
        assert_eq!((items.len(), has_more), (0, false));
        for page in [
            Value::Null,
            json!({}),
            json!({ "data": [1] }),
            json!({ "data": [1], "has_more": null }),
            json!({ "data": [1], "has_more": "true" }),
            json!({ "has_more": false }),
            json!({ "data": null, "has_more": false }),
            json!({ "data": {}, "has_more": false }),
            json!({ "data": [], "has_more": true }),
        ] {
            let error = read(page.clone()).unwrap_err().to_string();
            assert!(error.contains("/gate_sessions?limit=100"), "{error}");
            assert!(error.contains(&page.to_string()), "{error}");
        }
    }

    #[test]
    fn page_without_its_fields_is_no_end_of_a_list_of_the_pools() {
        let read = |page: Value| with_cursor("/pools/ledger?limit=200", &page, "entries");
        let page = json!({ "entries": [1], "nextCursor": "c", "hasMore": true });
        let (items, next) = read(page).unwrap();
        assert_eq!((items.len(), next.as_deref()), (1, Some("c")));
        let page = json!({ "entries": [], "nextCursor": null, "hasMore": false });
        let (items, next) = read(page).unwrap();
        assert_eq!((items.len(), next), (0, None));
        for page in [
            Value::Null,
            json!({}),
            json!({ "entries": [1], "hasMore": false }),
            json!({ "entries": [1], "nextCursor": null }),
            json!({ "entries": [1], "nextCursor": 1, "hasMore": true }),
            json!({ "entries": [1], "nextCursor": null, "hasMore": true }),
            json!({ "entries": [1], "nextCursor": "c", "hasMore": false }),
            json!({ "entries": [], "nextCursor": "c", "hasMore": true }),
            json!({ "entries": null, "nextCursor": null, "hasMore": false }),
            json!({ "data": [1], "nextCursor": null, "hasMore": false }),
        ] {
            let error = read(page.clone()).unwrap_err().to_string();
            assert!(error.contains("/pools/ledger?limit=200"), "{error}");
            assert!(error.contains(&page.to_string()), "{error}");
        }
    }
}
