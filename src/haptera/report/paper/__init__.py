"""The paper's table: adapters by shifts with the best, the second and the margin, in the formats of papers."""
