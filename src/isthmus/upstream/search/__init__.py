"""Ways out to the web: search engines, and pages where the operator lets them be opened."""
