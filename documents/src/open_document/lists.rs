//! Lists and headings with their numbers.

use super::{
    Body,
    numbering::{MAX_LEVEL, Numbering, OUTLINE, number_of},
};
use crate::xml::Element;

impl Body<'_> {
    pub(super) fn write_list(&mut self, list: &Element, text: &mut String) {
        let style = list
            .attribute("style-name")
            .or_else(|| self.lists.last().map(|(style, _)| style.clone()))
            .unwrap_or_default();
        let level = self.lists.len();
        let numbering = self.numbering.get(&(style.clone(), level)).cloned();
        let goes_on = list.attribute("continue-numbering").as_deref() == Some("true")
            || list.attribute("continue-list").is_some();
        let last = self.next_by_style.get(&style).copied().filter(|_| goes_on && level == 0);
        let first = numbering.as_ref().map_or(1, |numbered| numbered.start);
        self.lists.push((style, last.unwrap_or(first)));
        for item in list.elements() {
            let mut mark = String::new();
            if let Some((_, number)) = self.lists.last_mut().filter(|_| &*item.name == "list-item")
            {
                *number = number_of(item, "start-value").unwrap_or(*number);
                let number = *number;
                let item_mark = match &numbering {
                    Some(numbered) => self.mark(numbered, number),
                    None => "- ".to_owned(),
                };
                mark = format!("{}{item_mark}", "  ".repeat(level.min(10)));
                if let Some((_, next)) = self.lists.last_mut() {
                    *next = number.saturating_add(1);
                }
            }
            for element in item.elements() {
                match &*element.name {
                    "p" | "h" => self.write_paragraph(element, &std::mem::take(&mut mark), text),
                    "list" => self.write_list(element, text),
                    _ => self.write_blocks(element, text),
                }
            }
        }
        if let Some((style, next)) = self.lists.pop().filter(|_| level == 0) {
            self.next_by_style.insert(style, next);
        }
    }

    /// Writes a paragraph that is an item of a list without being in it.
    pub(super) fn write_numbered_paragraph(&mut self, item: &Element, text: &mut String) {
        let style = item.attribute("style-name").unwrap_or_default();
        let level = number_of(item, "level").unwrap_or(1).clamp(1, MAX_LEVEL) - 1;
        let list = item.attribute("list-id").unwrap_or_else(|| style.clone());
        let numbering = self.numbering.get(&(style.clone(), level)).cloned();
        let numbers = self.numbered_paragraphs.entry(list).or_default();
        let first = numbering.as_ref().map_or(1, |numbered| numbered.start);
        let next = numbers[level].map_or(first, |last| last.saturating_add(1));
        let number = number_of(item, "start-value").unwrap_or(next);
        numbers[level] = Some(number);
        numbers[level + 1..].fill(None);
        let above = numbers[..level].iter().map(|last| (style.clone(), last.unwrap_or(1) + 1));
        let around = std::mem::replace(&mut self.lists, above.collect());
        self.lists.push((style, number));
        let mark = numbering.map_or_else(|| "- ".to_owned(), |it| self.mark(&it, number));
        self.lists = around;
        let mut mark = format!("{}{mark}", "  ".repeat(level));
        for element in item.elements().filter(|it| matches!(&*it.name, "p" | "h")) {
            self.write_paragraph(element, &std::mem::take(&mut mark), text);
        }
    }

    /// Returns the number of the next heading at this level, from 1; empty if it has none.
    pub(super) fn heading_mark(&mut self, heading: &Element, level: usize) -> String {
        let Some(place) = level.checked_sub(1).filter(|place| *place < self.headings.len()) else {
            return String::new();
        };
        let of = |place: usize| self.numbering.get(&(OUTLINE.to_owned(), place));
        let is_unnumbered = heading.attribute("is-list-header").as_deref() == Some("true");
        let Some(numbered) = of(place).filter(|_| !is_unnumbered).cloned() else {
            return String::new();
        };
        let next = match self.headings[place] {
            0 => numbered.start,
            last => last.saturating_add(1),
        };
        let next = number_of(heading, "start-value").unwrap_or(next);
        let first = place.saturating_sub(numbered.levels.saturating_sub(1));
        let above = (first..place).filter_map(|at| {
            let how = of(at).filter(|how| !how.format.is_empty())?;
            Some(how.number(self.headings[at].max(how.start)))
        });
        let mut numbers: Vec<String> = above.collect();
        self.headings[place] = next;
        self.headings[place + 1..].fill(0);
        if numbered.format.is_empty() {
            return String::new();
        }
        numbers.push(numbered.number(next));
        let (before, behind) = numbered.prefix_suffix.unwrap_or_default();
        format!("{before}{}{behind} ", numbers.join("."))
    }

    /// Returns the mark before the item with this number.
    fn mark(&self, numbering: &Numbering, number: usize) -> String {
        if numbering.format.is_empty() && numbering.prefix_suffix.is_some() {
            return String::new();
        }
        let level = self.lists.len().saturating_sub(1);
        let above = level.saturating_sub(numbering.levels.saturating_sub(1))..level;
        let above = above.filter_map(|at| {
            // An open list holds the number of its next item, so the current item has one less.
            let (style, next) = self.lists.get(at)?;
            let outer = self.numbering.get(&(style.clone(), at))?;
            Some(outer.number(next.saturating_sub(1)))
        });
        let numbers: Vec<String> = above.chain([numbering.number(number)]).collect();
        let number = numbers.join(".");
        match &numbering.prefix_suffix {
            Some((before, behind)) => format!("{before}{number}{behind} "),
            None => format!("{number}. "),
        }
    }
}
