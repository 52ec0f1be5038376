"""HTTP for every run: completions that also score, chat, vectors, predictions, and the page.

    application(shelf, settings) -> FastAPI      app.py: the routes, each in a file of its own
    Direct(app, routes)                          direct.py: bodies of JSON go straight to their functions
    Shelf(folders, settings)                     models.py: the served runs, opened, reloaded, refused
    Worker(opened, …)                            worker.py: one thread a model, around `decode.engine`
    serve(folders, settings)                     process.py: the process: listening, signals, draining

Security is in security.py (Host, Origin, key, sizes, headers), body.py (strict JSON) and protocol.py (slow
clients). Errors have one form (errors.py), and say nothing of files and code.
"""
