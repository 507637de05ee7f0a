"""Turns: a message, committed before any model is asked, and all that answers it.

Whatever happens, a reply keeps what has arrived, and a status that says so. From the question to the end of the last
reply one row of a turn is in progress: the reply, or the call whose tool is at work. No request holds a call without
its result, or a result without its call. Every request is counted as spent, also one whose answer is no message.
"""
