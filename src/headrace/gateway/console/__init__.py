"""The pages for people, under /ui: server-side templates and a little JavaScript.

`routes.py` lists the pages, `views` has one function for each, `pages.py` renders, `sampling.py` keeps the
figures of the last minutes. Nothing imports this package but `gateway/app.py`. Begin with `routes.py`.
"""
