"""Turns: a message and everything that answers it. The message is committed before any model is asked.

A reply that breaks off keeps the text that has arrived, and its status says so. From the question to the end of the
last reply, one row of the turn is in progress: a reply, or the call of a running tool. No request contains a call
without its result, or a result without its call. The usage of every request is stored, even of one for a summary.
"""
