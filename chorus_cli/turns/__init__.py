"""Turns: a message, committed before any model is asked, and all that answers it.

Whatever happens, a reply keeps what has arrived, and a status that says so.
"""
