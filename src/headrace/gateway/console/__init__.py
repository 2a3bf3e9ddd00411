"""The pages for people, under /ui: server-side templates and a little JavaScript.

`routes.py` lists the pages, `views` has one function for each, `pages.py` renders, `state.py` keeps what was
just read. Nothing imports this package but `gateway/app.py`. Begin with `routes.py`.
"""
