"""Parts of the page that previews a recall."""
