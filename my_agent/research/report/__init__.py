"""The report as Markdown and as HTML. Words of pages are escaped in both."""
