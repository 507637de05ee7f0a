"""JSON: reading values that other programs wrote, and edits that keep comments."""
