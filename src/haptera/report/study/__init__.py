"""The sections of a study's page, each a function from the table to a section."""
