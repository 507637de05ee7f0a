"""JSON: values from elsewhere, and edits that keep comments."""
