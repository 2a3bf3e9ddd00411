"""The pages for people, under /ui."""
