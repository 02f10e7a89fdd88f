//! Lists: the mark before each item.

use std::collections::HashMap;

use crate::{numerals::write_number, xml::Element};

/// Numbering of one level of a list.
#[derive(Debug, Clone, Default)]
struct Level {
    format: String,
    /// Pattern of the mark, such as `%1.%2`.
    text: String,
    start: usize,
    /// Whether numbers of other levels are written in digits (`isLgl`).
    in_digits: bool,
    /// The deepest level, from 1, whose items restart this one; 0 for none. By default all higher levels
    /// do.
    restarts: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Id of each list's abstract numbering (`abstractNum`), which lists may share.
    abstract_ids: HashMap<String, String>,
    levels: HashMap<(String, usize), Level>,
    /// Levels that a list numbers differently from its abstract numbering.
    level_overrides: HashMap<(String, usize), Level>,
    /// The level that each abstract numbering assigns to a style.
    level_by_style: HashMap<(String, String), usize>,
    /// Numbers at which a list restarts the count of its abstract numbering; each is used up by the list's
    /// first item.
    start_overrides: HashMap<(String, usize), usize>,
    /// Last number of each level, by abstract numbering.
    counts: HashMap<String, [Option<usize>; 9]>,
}

impl Level {
    fn read(level: &Element) -> Self {
        let value = |name: &str| level.child(name).and_then(|e| e.attribute("val"));
        // A custom format (`001, 002, …`) stands beside one for older programs.
        let formats = level.all("numFmt");
        let own = formats.iter().find_map(|format| format.attribute("format"));
        let format = own.or_else(|| formats.first()?.attribute("val"));
        Self {
            format: format.unwrap_or_default(),
            text: value("lvlText").unwrap_or_default(),
            start: value("start").and_then(|n| n.parse().ok()).unwrap_or(1),
            restarts: value("lvlRestart").and_then(|n| n.parse().ok()),
            in_digits: level.child("isLgl").is_some_and(|it| !it.is_off("val")),
        }
    }
}

impl Lists {
    pub(super) fn read(part: Option<&Element>) -> Self {
        let mut lists = Self::default();
        let Some(part) = part else { return lists };
        for abstract_list in part.all("abstractNum") {
            let id = abstract_list.attribute("abstractNumId").unwrap_or_default();
            for (place, level) in abstract_list.elements().filter(|e| &*e.name == "lvl").enumerate()
            {
                let place = level.attribute("ilvl").and_then(|n| n.parse().ok()).unwrap_or(place);
                let style = level.child("pStyle").and_then(|style| style.attribute("val"));
                lists.level_by_style.extend(style.map(|style| ((id.clone(), style), place)));
                lists.levels.insert((id.clone(), place), Level::read(level));
            }
        }
        // An abstract numbering may only name the style of another one.
        let named = |list: &Element, name: &str| list.child(name)?.attribute("val");
        let abstract_lists = part.all("abstractNum");
        let links: HashMap<String, String> = abstract_lists
            .iter()
            .filter_map(|list| {
                let style = named(list, "numStyleLink")?;
                let meant = abstract_lists
                    .iter()
                    .find(|it| named(it, "styleLink").as_ref() == Some(&style))?;
                Some((list.attribute("abstractNumId")?, meant.attribute("abstractNumId")?))
            })
            .collect();
        for list in part.all("num") {
            let abstract_id = list.child("abstractNumId").and_then(|it| it.attribute("val"));
            let abstract_id = abstract_id.map(|id| links.get(&id).cloned().unwrap_or(id));
            if let (Some(id), Some(abstract_id)) = (list.attribute("numId"), abstract_id) {
                for (place, level) in list.all("lvlOverride").into_iter().enumerate() {
                    let number = |text: Option<String>| text.and_then(|text| text.parse().ok());
                    let begin = level.child("startOverride").and_then(|e| e.attribute("val"));
                    let place = number(level.attribute("ilvl")).unwrap_or(place);
                    if let Some(begin) = number(begin) {
                        lists.start_overrides.insert((id.clone(), place), begin);
                    }
                    if let Some(own) = level.child("lvl") {
                        lists.level_overrides.insert((id.clone(), place), Level::read(own));
                    }
                }
                lists.abstract_ids.insert(id, abstract_id);
            }
        }
        lists
    }

    /// Returns the level that a list assigns to a style.
    pub(super) fn level_of(&self, list: &str, style: &str) -> Option<usize> {
        let abstract_id = self.abstract_ids.get(list)?.clone();
        self.level_by_style.get(&(abstract_id, style.to_owned())).copied()
    }

    /// Returns the mark of the next item, with a space after it: `- `, `2. `, `1.3 `.
    pub(super) fn next_mark(&mut self, list: &str, level: usize) -> String {
        let abstract_id = self.abstract_ids.get(list).cloned().unwrap_or_default();
        let levels: [Option<&Level>; 9] = std::array::from_fn(|place| {
            let own = self.level_overrides.get(&(list.to_owned(), place));
            own.or_else(|| self.levels.get(&(abstract_id.clone(), place)))
        });
        let Some(own_level) = levels.get(level).copied().flatten() else {
            return "- ".to_owned();
        };
        let counts = self.counts.entry(abstract_id.clone()).or_default();
        let next = || counts[level].map_or(own_level.start, |count| count.saturating_add(1));
        let count = self.start_overrides.remove(&(list.to_owned(), level)).unwrap_or_else(next);
        counts[level] = Some(count);
        for (place, deeper) in counts.iter_mut().enumerate().skip(level + 1) {
            let restarts = levels[place].and_then(|it| it.restarts);
            if restarts.is_none_or(|behind| level < behind) {
                *deeper = None;
            }
        }
        if own_level.format == "bullet"
            || (own_level.format.is_empty() && own_level.text.is_empty())
        {
            return "- ".to_owned();
        }
        let mut text = own_level.text.clone();
        for (place, count) in counts.iter().enumerate() {
            let other = levels[place];
            let count = count.unwrap_or_else(|| other.map_or(1, |level| level.start));
            let format = match other {
                Some(level) if !own_level.in_digits || level.format == "decimalZero" => {
                    &*level.format
                }
                _ => "decimal",
            };
            text = text.replace(&format!("%{}", place + 1), &write_number(count, format));
        }
        if text.trim().is_empty() { String::new() } else { format!("{text} ") }
    }
}
