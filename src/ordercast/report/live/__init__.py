"""The page of a live run: it shows a group while it runs, and has the buttons to disturb it.

page        the page as it is served, and the verdicts that are put into it at the end
live.html   what is there before anything has happened
scripts     how it comes alive: diagram, members, the talk with the server
"""

from ordercast.report.live.page import live_page, verdict_block

__all__ = ["live_page", "verdict_block"]
