"""Pictures of attention: drawing, and what assembles figures from models and data."""
