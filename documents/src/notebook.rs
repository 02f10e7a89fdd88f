//! Notebooks (`.ipynb`, nbformat 3 and 4): the cells, and the text of their outputs.

use memchr::memmem;
use serde_json::Value;

use crate::{
    encoding, html,
    left_out::{Kind, Tally},
};

/// Returns whether a text may be a notebook.
pub(crate) fn is_notebook(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"{") && memmem::find(text, b"\"nbformat\"").is_some()
}

/// Extracts a notebook's text. Returns `None` for other text and JSON.
pub(crate) fn extract(text: &str, tally: &Tally) -> Option<String> {
    let notebook: Value = serde_json::from_str(text).ok()?;
    notebook.get("nbformat")?;
    // Version 3 has its cells in worksheets.
    let sheets = notebook.get("worksheets").and_then(Value::as_array).into_iter().flatten();
    let lists = std::iter::once(&notebook).chain(sheets);
    let cells = lists.filter_map(|list| list.get("cells")?.as_array()).flatten();
    let language = ["/metadata/kernelspec/language", "/metadata/language_info/name"]
        .into_iter()
        .find_map(|place| notebook.pointer(place)?.as_str())
        .unwrap_or_default();
    let mut parts = Vec::new();
    for cell in cells {
        let kind = cell.get("cell_type").and_then(Value::as_str).unwrap_or_default();
        let source = lines(cell.get("source").or_else(|| cell.get("input")));
        match kind {
            "heading" => {
                let level = cell.get("level").and_then(Value::as_u64).unwrap_or(1).clamp(1, 6);
                parts.push(format!("{} {source}", "#".repeat(level as usize)));
            }
            "code" if !source.is_empty() => parts.push(format!("```{language}\n{source}\n```")),
            _ => parts.push(source),
        }
        let outputs = cell.get("outputs").and_then(Value::as_array).into_iter().flatten();
        parts.extend(outputs.map(|output| output_text(output, tally)));
    }
    parts.retain(|part| !part.is_empty());
    Some(parts.join("\n\n"))
}

/// Returns the text of an output.
fn output_text(output: &Value, tally: &Tally) -> String {
    let kind = output.get("output_type").and_then(Value::as_str).unwrap_or_default();
    if matches!(kind, "error" | "pyerr") {
        let part = |name: &str| output.get(name).and_then(Value::as_str).unwrap_or_default();
        let trace = output.get("traceback").and_then(Value::as_array).into_iter().flatten();
        let trace: Vec<&str> = trace.filter_map(Value::as_str).collect();
        let trace = encoding::remove_escapes(&trace.join("\n"));
        return if trace.contains(part("evalue")) && !trace.trim().is_empty() {
            trace.trim().to_owned()
        } else {
            format!("{}: {}", part("ename"), part("evalue"))
        };
    }
    let data = output.get("data").unwrap_or(output);
    let is_picture =
        |name: &String| name.starts_with("image/") || matches!(&**name, "png" | "jpeg" | "svg");
    let has_picture = data.as_object().is_some_and(|data| data.keys().any(is_picture));
    // Version 3 has the names of kinds without what they are of.
    let of_kind = |name: &str| {
        let short =
            name.rsplit_once('/').map(|(_, short)| if short == "plain" { "text" } else { short });
        let value = data.get(name).or_else(|| data.get(short?));
        Some(lines(value)).filter(|text| !text.is_empty())
    };
    let plain = of_kind("text/plain");
    let other = || data.as_object()?.iter().find_map(|(kind, value)| other_text(kind, value));
    // The plain text of an output that is shown otherwise is the name of an object.
    let is_name = |text: &String| {
        text.starts_with('<')
            && text.ends_with('>')
            && text.contains(" object")
            && !text.contains('\n')
    };
    let page = || {
        let page = of_kind("text/html")?;
        html::extract(page.as_bytes(), tally).ok().filter(|text| !text.is_empty())
    };
    let text = of_kind("text/markdown")
        .or_else(|| plain.clone().filter(|text| !is_name(text)))
        .or_else(page)
        .or_else(|| of_kind("text/latex"))
        .or_else(other)
        .or(plain)
        .unwrap_or_default();
    let text = last_states(&encoding::remove_escapes(&text));
    if !has_picture {
        let mut kinds = data.as_object().into_iter().flat_map(serde_json::Map::keys);
        if let Some(kind) = kinds.find(|kind| text.is_empty() && kind.starts_with("application/")) {
            tally.add_in_part(Kind::UnreadParts, 1, kind);
        }
        return text;
    }
    tally.add(Kind::Pictures, 1);
    // The text of a picture's output is often the name of an object.
    if text.is_empty() || text.starts_with('<') {
        "[image]".to_owned()
    } else {
        format!("{text}\n[image]")
    }
}

/// Returns each line as it is shown at last: a carriage return goes back to its start, as in bars of
/// progress.
fn last_states(text: &str) -> String {
    let shown = |line: &str| {
        let states = line.trim_end_matches('\r');
        states.rsplit_once('\r').map_or(states, |(_, last)| last).to_owned()
    };
    text.split('\n').map(shown).collect::<Vec<_>>().join("\n")
}

/// Returns the text of a kind that is read if there is no other: data, or a text of any language.
fn other_text(kind: &str, value: &Value) -> Option<String> {
    let is_data = matches!(kind, "json" | "application/json")
        || (kind.ends_with("+json") && !kind.starts_with("application/vnd."));
    let text = match value {
        // Without line breaks: indentation makes deep arrays a hundred times as long.
        Value::Object(_) | Value::Array(_) if is_data && kind != "json" => value.to_string(),
        value if is_data || kind.starts_with("text/") => lines(Some(value)),
        _ => return None,
    };
    Some(text).filter(|text| !text.is_empty() && !matches!(kind, "text/plain" | "text/html"))
}

/// Joins a text that is one string or a list of lines.
fn lines(text: Option<&Value>) -> String {
    let text = match text {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    };
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_and_their_text_are_read() {
        let tally = Tally::default();
        let notebook = serde_json::json!({"nbformat": 4, "metadata": {"language_info": {"name": "julia"}}, "cells": [
            {"cell_type": "markdown", "source": ["# Tides\n", "twice"]},
            {"cell_type": "code", "source": "plot(x)", "outputs": [
                {"output_type": "stream", "text": ["\u{1b}[31mebb\u{1b}[0m\n"]},
                {"output_type": "stream", "text": ["\r 0%|  | 0/2", "\r50%|# | 1/2", "\r100%|##| 2/2\r\n", "end\r"]},
                {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": "<Figure>"}},
                {"output_type": "display_data", "data": {"text/html": ["<table><tr><td>ebb", "<td>7</table>"]}},
                {"output_type": "display_data", "data": {"text/html": "<b>low</b> at six", "text/plain": "<IPython.core.display.HTML object>"}},
                {"output_type": "display_data", "data": {"text/latex": "$h^2$", "text/plain": ["<IPython.core.display.Math object>"]}},
                {"output_type": "error", "ename": "Flood", "evalue": "too high", "traceback": []},
                {"output_type": "error", "ename": "Ebb", "evalue": "too low", "traceback": ["\u{1b}[0;31mline 3\u{1b}[0m", "Ebb: too low"]},
                {"output_type": "display_data", "data": {"application/json": {"port": 7}, "text/plain": "<IPython.core.display.JSON object>"}},
                {"output_type": "display_data", "data": {"text/csv": "port,metres\nBrest,7"}},
                {"output_type": "display_data", "data": {"application/javascript": "no()"}},
            ]},
            {"cell_type": "raw", "source": ""},
            {"cell_type": "heading", "level": 2, "source": "Old"},
            {"cell_type": "code", "outputs": [
                {"output_type": "display_data", "data": {"application/vnd.program+json": {"a": 1}}},
                {"output_type": "pyout", "html": ["<b>in</b> old"], "metadata": {}},
                {"output_type": "display_data", "json": ["{\"tide\": 1}"]},
            ]},
        ]});
        let text = extract(&notebook.to_string(), &tally).unwrap();
        assert_eq!(
            text,
            "# Tides\ntwice\n\n```julia\nplot(x)\n```\n\nebb\n\n100%|##| 2/2\nend\n\n[image]\n\nebb | 7\n\nlow at six\n\n$h^2$\n\nFlood: too high\n\nline 3\nEbb: too low\n\n{\"port\":7}\n\nport,metres\nBrest,7\n\n## Old\n\nin old\n\n{\"tide\": 1}"
        );
        let left_out = tally.into_left_out();
        assert_eq!([Kind::Pictures, Kind::UnreadParts].map(|it| left_out.count(it)), [1, 2]);
        assert_eq!(extract("{\"cells\": []}", &Tally::default()), None);
    }

    #[test]
    fn deep_data_is_not_longer_than_in_the_notebook() {
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        let data = format!("[{}]", vec![deep; 50].join(","));
        let notebook = format!(
            r#"{{"nbformat": 4, "cells": [{{"cell_type": "code", "outputs": [{{"data": {{"application/json": {data}}}}}]}}]}}"#
        );
        assert_eq!(extract(&notebook, &Tally::default()).unwrap(), data);
    }
}
