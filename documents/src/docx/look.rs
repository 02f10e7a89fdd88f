//! The look of text, from the properties of runs and paragraphs.

use crate::{
    colors::{Background, TINY, WHITE, parse_hexadecimal},
    drawing::is_clear_fill,
    look::{Color, Look},
    symbols::Fonts,
    xml::Element,
};

/// Attributes for the fonts of a run, one for each group of scripts.
const SCRIPTS: [&str; 4] = ["ascii", "hAnsi", "cs", "eastAsia"];

impl Look {
    /// Reads `rPr`.
    pub(super) fn read(properties: Option<&Element>) -> Self {
        let child = |name: &str| properties.and_then(|properties| properties.child(name));
        let is_on = |name: &str| child(name).map(|it| !it.is_off("val"));
        let hidden = is_on("vanish");
        let struck =
            [is_on("strike"), is_on("dstrike")].into_iter().flatten().reduce(|a, b| a || b);
        let place = child("vertAlign").and_then(|place| place.attribute("val"));
        let value = |name: &str| child(name).and_then(|it| it.attribute("val"));
        // In half points. A smaller move aligns signs.
        let moved = value("position").and_then(|position| position.parse::<i64>().ok());
        let is_script = |name: &str, is_moved: bool| {
            place.as_ref().map(|place| place == name).or_else(|| moved.map(|_| is_moved))
        };
        let raised = is_script("superscript", moved.is_some_and(|moved| moved >= 4));
        let lowered = is_script("subscript", moved.is_some_and(|moved| moved <= -4));
        let size = value("sz").and_then(|size| size.parse().ok());
        let marked = value("highlight").filter(|it| it != "none").map(|_| Background::Unknown);
        Self {
            hidden,
            fonts: child("rFonts").and_then(fonts),
            raised,
            lowered,
            struck,
            capitals: is_on("caps"),
            // `sz` is in half points.
            tiny: size.map(|size: f64| size / 2.0 <= TINY),
            color: properties.and_then(fill_color).or_else(|| {
                let color = value("color")?;
                Some(parse_hexadecimal(&color).map_or(Color::Automatic, Color::Plain))
            }),
            background: marked.or_else(|| shading_of(properties)),
        }
    }

    /// Adds the background from a paragraph's properties.
    pub(super) fn in_paragraph(self, properties: Option<&Element>) -> Self {
        Self { background: self.background.or_else(|| shading_of(properties)), ..self }
    }

    /// Combines the looks of a run's style and of its paragraph's style. Each of the two toggles whether
    /// text is hidden (ECMA-376, part 1, 17.7.3).
    pub(super) fn toggled_with(self, paragraph: Self) -> Self {
        let hidden = match (self.hidden, paragraph.hidden) {
            (Some(one), Some(other)) => Some(one != other),
            (one, other) => one.or(other),
        };
        Self { hidden, ..self.or_from(paragraph) }
    }
}

/// Returns the color of a fill of letters (`w14:textFill`), which precedes their color. An outline makes
/// them visible in any case.
fn fill_color(properties: &Element) -> Option<Color> {
    let fill = properties.child("textFill")?;
    let outline = properties.child("textOutline");
    let plain = || {
        let color = fill.child("solidFill")?.child("srgbClr")?;
        let is_changed = color.elements().next().is_some();
        parse_hexadecimal(&color.attribute("val")?).filter(|_| !is_changed)
    };
    Some(match outline.is_some_and(|it| it.child("noFill").is_none()) {
        true => Color::Automatic,
        false if is_clear_fill(fill, &["100000", "100%"]) => Color::Clear,
        false => plain().map_or(Color::Automatic, Color::Plain),
    })
}

/// Returns the background of a document's pages.
pub(super) fn page_background(document: &Element) -> Background {
    if document.all("background").is_empty() {
        Background::Plain(WHITE)
    } else {
        Background::Unknown
    }
}

/// Returns the background that properties set, if any.
fn shading_of(properties: Option<&Element>) -> Option<Background> {
    let shade = properties?.child("shd")?;
    let fill = shade.attribute("fill").filter(|fill| fill != "auto");
    match (shade.attribute("val").as_deref(), fill) {
        (Some("clear" | "nil") | None, None) => None,
        (Some("clear") | None, Some(fill)) => {
            Some(parse_hexadecimal(&fill).map_or(Background::Unknown, Background::Plain))
        }
        _ => Some(Background::Unknown),
    }
}

/// Returns the background of a table's cells; unknown if the table has a style, which may set any.
pub(super) fn background_of_table(table: &Element, around: Background) -> Background {
    let properties = table.child("tblPr");
    let is_styled = properties.is_some_and(|it| it.child("tblStyle").is_some());
    shading_of(properties).unwrap_or(if is_styled { Background::Unknown } else { around })
}

/// Returns the background of a cell.
pub(super) fn background_of_cell(cell: &Element, table: Background) -> Background {
    shading_of(cell.child("tcPr")).unwrap_or(table)
}

fn fonts(names: &Element) -> Option<Fonts> {
    // A theme font precedes a named font.
    let named = |script: &str| {
        names.attribute(&format!("{script}Theme")).or_else(|| names.attribute(script))
    };
    let [letters, others @ ..] = SCRIPTS.map(named);
    let others: Vec<String> = others.into_iter().flatten().collect();
    (letters.is_some() || !others.is_empty()).then(|| Fonts::by_names(letters.as_deref(), &others))
}

#[cfg(test)]
mod tests {
    use crate::docx::tests::{read, relation};

    fn styled(styles: &str, body: &str) -> String {
        read(&[
            (
                "word/_rels/document.xml.rels",
                &format!(
                    "<Relationships>{}</Relationships>",
                    relation("a", "styles", "styles.xml")
                ),
            ),
            ("word/styles.xml", &format!("<w:styles>{styles}</w:styles>")),
            ("word/document.xml", &format!("<w:document><w:body>{body}</w:body></w:document>")),
        ])
        .unwrap()
    }

    fn style(id: &str, base: &str, properties: &str) -> String {
        format!(
            "<w:style w:styleId='{id}'><w:basedOn w:val='{base}'/><w:rPr>{properties}</w:rPr></w:style>"
        )
    }

    fn paragraph(paragraph: &str, run: &str, properties: &str, text: &str) -> String {
        format!(
            "<w:p><w:pPr><w:pStyle w:val='{paragraph}'/></w:pPr>\
             <w:r><w:rPr><w:rStyle w:val='{run}'/>{properties}</w:rPr><w:t>{text}</w:t></w:r></w:p>"
        )
    }

    #[test]
    fn a_style_hides_text_as_a_run_does() {
        let styles = [
            style("hid", "", "<w:vanish/>"),
            style("hid2", "hid", ""),
            style("seen", "hid", "<w:vanish w:val='0'/>"),
        ];
        let body = [
            paragraph("", "hid", "", "by run"),
            paragraph("hid", "", "", "by paragraph"),
            paragraph("hid2", "", "", "by what it is based on"),
            paragraph("seen", "", "", "shown"),
            paragraph("hid", "hid", "", "turned over twice"),
            paragraph("hid", "", "<w:vanish w:val='off'/>", "shown by itself"),
        ];
        assert_eq!(
            styled(&styles.concat(), &body.concat()),
            "shown\nturned over twice\nshown by itself"
        );
    }

    #[test]
    fn the_usual_look_hides_text_too() {
        let body = [
            paragraph("", "", "", "hidden").replace("<w:pStyle w:val=''/>", ""),
            paragraph("", "", "<w:vanish w:val='0'/>", "shown").replace("<w:pStyle w:val=''/>", ""),
        ];
        let usual = "<w:docDefaults><w:rPrDefault><w:rPr><w:vanish/></w:rPr></w:rPrDefault></w:docDefaults>";
        assert_eq!(styled(usual, &body.concat()), "shown");
        let usual = "<w:style w:type='paragraph' w:default='1' w:styleId='Normal'><w:rPr><w:vanish/></w:rPr></w:style>";
        assert_eq!(styled(usual, &body.concat()), "shown");
    }

    #[test]
    fn raised_numbers_stay_raised() {
        let raised = "<w:vertAlign w:val='superscript'/>";
        let styles = [style("up", "", raised)];
        let run = |properties: &str, text: &str| {
            format!("<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>")
        };
        let body = [
            run("", "10"),
            run(raised, "-6"),
            run("", " m"),
            run("<w:rStyle w:val='up'/>", "2"),
            run("", ", the 1"),
            run(raised, "st"),
            run("", " x"),
            run("<w:vertAlign w:val='subscript'/>", "1"),
            run("", " 10"),
            run("<w:position w:val='9'/><w:sz w:val='14'/>", "3"),
            run("", " log"),
            run("<w:position w:val='-6'/>", "4"),
            run("<w:position w:val='1'/>", "8"),
        ];
        let text = styled(&styles.concat(), &format!("<w:p>{}</w:p>", body.concat()));
        assert_eq!(text, "10⁻⁶ m², the 1st x₁ 10³ log₄8");
    }

    #[test]
    fn a_font_of_signs_may_come_of_a_style() {
        let font = |name: &str| format!("<w:rFonts w:ascii='{name}' w:hAnsi='{name}'/>");
        let styles = [
            style("greek", "", &font("Symbol")),
            style("greek2", "greek", "<w:b/>"),
            style("ticks", "", &font("Wingdings")),
        ];
        let body = [
            paragraph("", "greek2", "", "5 &#xF06D;g"),
            paragraph("greek", "", "", "&#xF0B3; a"),
            paragraph("greek", "ticks", "", "&#xFC;&#xF0FE;"),
            paragraph("greek", "", &font("Arial"), "plain"),
            paragraph("greek", "", "<w:rFonts w:asciiTheme='minorAscii'/>", "plain"),
            paragraph("greek", "", "<w:rFonts w:hint='default'/>", "m"),
            // Set for letters of another script only.
            paragraph("", "", "<w:rFonts w:hAnsi='Symbol'/>", "m&#xF06D;"),
        ];
        assert_eq!(styled(&styles.concat(), &body.concat()), "5 µγ\n≥ α\n✓☑\nplain\nplain\nµ\nmµ");
    }
}
