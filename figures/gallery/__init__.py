"""The gallery: many questions on one HTML page."""
