//! Pictures as files: SVG, and PNG for what shows no SVG. A PNG is drawn without the system's fonts, so that
//! it is the same everywhere.

use crate::Mode;
use resvg::{tiny_skia, usvg};
use std::sync::{Arc, LazyLock};
use usvg::fontdb::Database;

/// DejaVu Sans with the characters of Western European languages, Greek letters and signs of labels.
const FONT: &[u8] = include_bytes!("../font/DejaVuSans-subset.ttf");
const FAMILY: &str = "DejaVu Sans";
/// Pixels per unit of the SVG.
const SCALE: f32 = 2.0;

static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family(FAMILY);
    Arc::new(fonts)
});

/// A picture that cannot be drawn as PNG, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PngError(String);

impl core::fmt::Display for PngError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "the picture cannot be drawn as PNG: {}", self.0)
    }
}

impl std::error::Error for PngError {}

/// Kinds of files of pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Formats {
    /// SVG, which follows light and dark mode.
    pub svg: bool,
    /// PNG, in light colours on white.
    pub png: bool,
}

impl Formats {
    /// Both.
    pub const ALL: Self = Self { svg: true, png: true };

    /// Returns the files of a picture, `NAME.svg` and `NAME.png`. `draw` draws it as SVG.
    ///
    /// # Errors
    /// When the PNG has no area, or is too large for the memory.
    pub fn files(
        self,
        name: &str,
        draw: impl Fn(Mode) -> String,
    ) -> Result<Vec<(String, Vec<u8>)>, PngError> {
        let mut files = Vec::new();
        if self.svg {
            files.push((format!("{name}.svg"), draw(Mode::Standalone).into_bytes()));
        }
        if self.png {
            files.push((format!("{name}.png"), to_png(&draw(Mode::Inline))?));
        }
        Ok(files)
    }
}

/// Draws an SVG without a style sheet: its colours are those of attributes, as custom properties are unknown
/// to the library.
fn to_png(svg: &str) -> Result<Vec<u8>, PngError> {
    let options =
        usvg::Options { font_family: FAMILY.to_owned(), fontdb: FONTS.clone(), ..Default::default() };
    let failed = |error: &dyn core::fmt::Display| PngError(error.to_string());
    let tree = usvg::Tree::from_str(svg, &options).map_err(|e| failed(&e))?;
    let size = tree.size();
    let [wide, high] = [size.width(), size.height()].map(|length| (length * SCALE).round() as u32);
    let mut picture = tiny_skia::Pixmap::new(wide, high).ok_or_else(|| failed(&"it has no area"))?;
    picture.fill(tiny_skia::Color::WHITE);
    resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut picture.as_mut());
    picture.encode_png().map_err(|e| failed(&e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Curve, Plot, Point, Style};

    /// Returns the number of dark pixels of a plot with this label.
    fn dark(label: &str) -> usize {
        let curve = Curve::new("", Style::Line, vec![Point::new(0.0, 0.0), Point::new(1.0, 1.0)]);
        let plot = Plot::new("", "a line", Axis::linear(label), Axis::linear(""), vec![curve]);
        let picture = tiny_skia::Pixmap::decode_png(&to_png(&plot.to_svg(Mode::Inline)).unwrap()).unwrap();
        picture.pixels().iter().filter(|p| p.red() < 100 && p.green() < 100 && p.blue() < 100).count()
    }

    #[test]
    fn each_character_of_a_label_is_drawn() {
        let without = dark("");
        for sign in "aZ09%µ±−×≤≥→αλ".chars() {
            assert!(dark(&sign.to_string()) > without + 10, "{sign}");
        }
    }
}
