"""The formats that Chorus writes itself."""
