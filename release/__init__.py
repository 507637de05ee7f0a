"""Makes a release of Chorus; no part of the package."""
