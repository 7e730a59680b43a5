"""The desk of a custodian: a local web application, whose pages are made of SQL that they show.

It needs the extra ``sdcduck[desk]``. Pages work without scripts, and nothing is loaded from elsewhere.
"""
