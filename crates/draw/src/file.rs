//! Files of figures. Their painters are compiled with the feature `files`.

#[cfg(feature = "files")]
pub(crate) mod painters;

use crate::{drawing::Drawing, error::PlotError};

/// Format of the file of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// A self-contained SVG file: letters are outlines.
    Svg,
    /// A PDF file of one page: letters are text in an embedded font.
    Pdf,
    /// A PNG file with 600 dots per inch, of a grid with 150.
    Png,
}

impl FileFormat {
    /// Checks that this program was built with the painters of files.
    ///
    /// # Errors
    /// The feature `files` is off.
    pub const fn check() -> Result<(), PlotError> {
        if cfg!(feature = "files") { Ok(()) } else { Err(PlotError::NotBuilt) }
    }
}

impl Drawing {
    /// Returns the contents of a file.
    ///
    /// # Errors
    /// The feature `files` is off, or a library rejects the drawing.
    pub fn file(&self, format: FileFormat) -> Result<Vec<u8>, PlotError> {
        #[cfg(feature = "files")]
        return match format {
            FileFormat::Svg => Ok(painters::svg(self).into_bytes()),
            FileFormat::Pdf => Ok(painters::pdf(self)),
            FileFormat::Png => painters::png(self),
        };
        #[cfg(not(feature = "files"))]
        FileFormat::check().map(|()| vec![format as u8])
    }
}
