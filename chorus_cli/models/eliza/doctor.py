"""ELIZA's script: a listener after the idea of Weizenbaum's DOCTOR, in words of its own.

The notation is that of ``script``. Rules see the text after its words were replaced: the user's ``I``
is ``you`` there, and ``you`` as ``i``. The rules for these words themselves are in ``eliza_pronouns``.
"""

from __future__ import annotations

DOCTOR = """
sorry apologize apologise
  0
    There is nothing to be sorry for.
    No harm done. What were you going to say?
    Who taught you to excuse yourself so readily?
thanks thank
  0
    You are welcome, though you did the work.
    Gladly. Is there more?
hello hi hey
  0
    Hello. I am ELIZA, a program of 1966 without any understanding. What would you like to talk about?
    Hello again. Where shall we start?
bye goodbye quit exit
  1
    Goodbye. Type /quit to leave.
  bye|goodbye 0
    Goodbye. Type /quit to leave.
  0
    NEWKEY
remember 5
  0 you remember 0
    Why has {4} come back to you now?
    Is {4} something that you like to look back on?
    What does the memory of {4} do to you?
  0 do i remember 0
    My memory is short. What about {5}?
    Should I have kept {5} in mind?
  0
    NEWKEY
if 3
  0 if 0
    Suppose that {3}: what would come next?
    How likely is it, in your opinion, that {3}?
    And if it were not so?
dreamt > dreamed 4
  =dreamed
dreamed 4
  0 you dreamed of|about 0
    Was {5} ever on your mind by day?
    How did it feel to dream of {5}?
    Have you dreamed of {5} before?
  0 you dreamed 0
    How did you feel when you woke from that?
  =dream
dream dreams 3
  0
    What do you make of that dream?
    Who else appears in your dreams?
    Does a dream like this stay with you during the day?
perhaps maybe possibly probably
  0
    You leave the door open. What would close it?
    Which way do you lean?
    What holds you back from saying yes or no?
name 15
  0 my name 0
    =ABOUT
  0 your name is 1 0
    Good to meet you, {5}. What shall we talk about?
    You may keep your name, {5}: I forget names at once.
  0
    Names mean little to me. Tell me about the one who bears it.
deutsch español espanol français francais italiano português 10
  0
    I am afraid that I have rules for English only.
computer computers machine machines robot robots 50
  0 i'm 0
    =ABOUT
  0 are i 0
    =ABOUT
  0 i are 0
    =ABOUT
  0
    Have machines been a trouble to you?
    What makes you speak of machines just now?
    And where do people come in?
    You do know that you are talking to a machine?
yes yeah yep certainly sure
  0
    You sound decided. Why is that?
    Good. Tell me how you know.
    Fine. What follows from it?
no nope
  no one 0
    PRE nobody {3} =nobody
  0
    Is that a firm no?
    What would have to change for a yes?
    Not at all? Not even a little?
what how when where who whom which
  0 who are i 0
    =ABOUT
  0 who made|wrote|built|created i 0
    =ABOUT
  0 what are i
    =ABOUT
  0 what can|could i do 0
    =HELP
  0 how do|does i work 0
    =ABOUT
  0 how are i 0
    I am a program, so always the same. How are you?
    Unchanged since 1966. And you?
  0
    What answer would you like best?
    I know no facts, only rules for turning words around. What do you think yourself?
    Who have you put that question to so far?
    Has this been going through your mind for long?
    What lies behind the question?
because 1
  0
    Are there other reasons, too?
    Does that explain all of it?
    If it were not for that, what would be different?
why 1
  0 why don't i 0
    Should I {5}, in your view?
    Perhaps I will {5} when the time is right.
    Why don't you {5} yourself?
  0 why can't you 0
    Who says that you have to be able to {5}?
    What have you tried so far?
  =what
everyone everybody nobody noone 2
  0 everyone|everybody|nobody|noone 0
    Whom do you have in mind when you say {2}?
    Surely {2} is a large word. Is there no exception?
    Who would be the first to come to mind?
always never 1
  0
    Without any exception?
    When was the last time?
    Which occasion do you have before your eyes?
alike same 10
  =LIKENESS
like 10
  0 are|is|was|were|looks|seems|sounds 0 like 0
    =LIKENESS
  0
    NEWKEY
different 1
  0
    Where does the difference lie?
    Which of the two would you rather have?
LIKENESS
  0
    What do they have in common, as you see it?
    And where does the likeness end?
    What does this resemblance mean to you?
    Could it be chance?

# Remembered phrases with MY, for a message without keywords; and answers if nothing is remembered.
MEMORY
  0 your 1 0
    Let us go back to what you said before: your {3} {4}.
    There was something earlier: your {3} {4}. What about it now?
    Has this to do with what you told me: your {3} {4}?
    I still have this from before: your {3} {4}. Is there more to tell?
NONE
  0
    Say a little more, please.
    And then?
    How do you feel as you say that?
    I have no rule for that. Try it in other words?
    Where does that lead you?
    Let us stay with that for a moment.
"""
