def told(grown):
    return [], {}
