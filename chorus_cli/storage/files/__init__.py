"""Files: settings, sessions, personas, drafts, locks."""
