"""ELIZA's script: new words for a listener like Weizenbaum's DOCTOR. ``responder`` explains the format.

Rules match the text after its words are replaced: the user's ``I`` has become ``you``, and ``you`` has become ``i``.
"""

from __future__ import annotations

SCRIPT = """
sorry apologize apologise
    There is nothing to be sorry for.
    No harm done. What were you going to say?
    Who taught you to excuse yourself so readily?
thanks thank
    You are welcome, though you did the work.
    Gladly. Is there more?
hello hi hey
    Hello. I am ELIZA, a program of 1966 without any understanding. What would you like to talk about?
    Hello again. Where shall we start?
bye goodbye quit exit
  1
    Goodbye. Type /quit to leave.
  bye|goodbye 0
    Goodbye. Type /quit to leave.
  NEWKEY
remember 5
  0 you remember 0
    Why has {4} come back to you now?
    Is {4} something that you like to look back on?
    What does the memory of {4} do to you?
  0 do i remember 0
    My memory is short. What about {5}?
    Should I have kept {5} in mind?
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
    What do you make of that dream?
    Who else appears in your dreams?
    Does a dream like this stay with you during the day?
perhaps maybe possibly probably
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
    I am afraid that I have rules for English only.
computer computers machine machines robot robots 50
  0 i'm 0
  0 are i 0
  0 i are 0
    =ABOUT
  0
    Have machines been a trouble to you?
    What makes you speak of machines just now?
    And where do people come in?
    You do know that you are talking to a machine?
yes yeah yep certainly sure
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
  0 who made|wrote|built|created i 0
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
    Without any exception?
    When was the last time?
    Which occasion do you have before your eyes?
alike same 10
  =LIKENESS
like 10
  0 are|is|was|were|looks|seems|sounds 0 like 0
    =LIKENESS
  NEWKEY
different 1
    Where does the difference lie?
    Which of the two would you rather have?
LIKENESS
    What do they have in common, as you see it?
    And where does the likeness end?
    What does this resemblance mean to you?
    Could it be chance?
# Answers to a message without keywords: first with a remembered phrase, then for the case that there is none.
MEMORY
  0 your 1 0
    Let us go back to what you said before: your {3} {4}.
    There was something earlier: your {3} {4}. What about it now?
    Has this to do with what you told me: your {3} {4}?
    I still have this from before: your {3} {4}. Is there more to tell?
NONE
    Say a little more, please.
    And then?
    How do you feel as you say that?
    I have no rule for that. Try it in other words?
    Where does that lead you?
    Let us stay with that for a moment.
/family: mother mom mum mommy father dad daddy parents family sister brother wife husband son daughter child children
/belief: feel think believe suppose guess
/sad: sad unhappy depressed miserable lonely sick tired afraid scared anxious worried angry upset stressed
/happy: happy glad elated better cheerful calm proud relieved
/self: ai bot chatbot robot program machine computer human person real alive conscious sentient intelligent llm
me > you
myself > yourself
yourself > myself
mine > yours
yours > mine
dont > don't
cant > can't
# Contractions are written out so that the rules for I and YOU match.
i'm > you're
  0 you're 0
    PRE you are {3} =i
im > you're
  =i'm
i've > you've
  0 you've 0
    PRE you have {3} =i
i'll > you'll
  0 you'll 0
    PRE you will {3} =i
i'd > you'd
  0 you'd 0
    PRE you would {3} =i
you're > I'm
  0 i'm 0
    PRE i are {3} =you
you've > I've
  0 i've 0
    PRE i have {3} =you
you'll > I'll
  0 i'll 0
    PRE i will {3} =you
you'd > I'd
  0 i'd 0
    PRE i would {3} =you
am > are
  0 are you 0
    What gives you the idea that you might be {4}?
    How would it be for you to be {4}?
    Who would say that you are {4}?
  =are
are
  0 are i 0 /self 0
    =ABOUT
  0 are i 0
    Would it matter to you if I were {4}?
    Why do you wonder if I am {4}?
    Suppose I were {4}. What then?
  0 are they 0
    What if they were not {4}?
    What makes you ask if they are {4}?
  are 0
    =what
  0 are 0
    What if they were not {3}?
    Have they always been {3}?
    Who says that they are {3}?
your > my
  0 my 0
    What draws your attention to my {3}?
    Leave my {3} aside. What about yours?
    Is it really my {3} that concerns you?
was were 2
  0 you wish 0
    =i
  0 was|were you 0
    Suppose you were {4}. What would follow?
    Who told you that you were {4}?
    And what if you had not been {4}?
  0 you was|were 0
    Were you really {4}?
    For how long were you {4}?
    Does it still matter that you were {4}?
  0 was|were i 0
    Would you have liked me to be {4}?
    What did you see in me, that I was {4}?
  NEWKEY
i > you
  0 you would like to 0
    PRE you want to {6} =i
  0 you want|need to 0
    What would change for you if you could {5}?
    For how long have you wanted to {5}?
    What keeps you from it, if you want to {5}?
  0 you wish 0
    What would it be like if that came true?
    Who could make that wish come true?
  0 you want|need|desire 0
    What would change for you if you had {4}?
    For how long have you wanted {4}?
    Suppose {4} never comes. What then?
    What stands between you and {4}?
  0 you are not 0
    Would you like to be {5}?
    Since when are you not {5}?
  0 you are 0 /sad 0
    That sounds hard. What has made you {5}?
    When did you first notice that you were {5}?
    Who knows that you are {5}?
    What would have to happen so that you were no longer {5}?
  0 you are 0 /happy 0
    What has made you {5}?
    I am pleased to hear it. Does being {5} come easily to you?
    Who shares it with you when you are {5}?
  0 you was 0
    =was
  0 you /belief that 0
    PRE you {3} {5} =i
  0 you /belief you 0
    What speaks for it that you {5}?
    Are you certain that you {5}?
    Would others say that you {5}?
  0 you 0 /belief 0 i 0
    =you
  0 you feel 0
    When else do you feel {4}?
    What is happening around you when you feel {4}?
    How long have you felt {4}?
  0 you are 0
    Since when are you {4}?
    Do you like being {4}?
    What is it like to be {4}?
    Did you come here because you are {4}?
  0 you can't|cannot 0
    What would happen if you could {4}?
    Have you truly tried to {4}?
    Who or what keeps you from it?
  0 you don't 0
    What would it take for you to {4}?
    Why is it that you don't {4}?
    Do you regret that you don't {4}?
  0 you 0 i
    Are you sure that it is me whom you {3}?
    And what if I cannot {3} you?
  you
    Yes, you. What of it?
  0 you 0
    Tell me more about that: you {3}.
    You {3}? What lies behind it?
    How does it feel to say that you {3}?
    What made you say that you {3}?
you > i
  0 i remind you of 0
    In what way do I remind you of {6}?
    What have {6} and I in common?
  0 i are 0 /self 0
    =ABOUT
  0 i are 0 stupid|dumb|useless|wrong|bad|boring 0
    You may well say so: I am a handful of rules from 1966, without any understanding.
    I cannot deny it. I am ELIZA, and I only match patterns.
  0 do i think|feel|learn 0
    =ABOUT
  0 i are 0
    What makes you see me as {4}?
    Does it please you to think that I am {4}?
    Would you like to be {4} yourself?
  0 i 0 you
    What gives you the feeling that I {3} you?
    Suppose I {3} you. What then?
  0 i 0
    I am hardly the one to talk about. What about you?
    Would it trouble you if it were so that I {3}?
    Could it be that you do so yourself?
my > your 2
  0 your
    NEWKEY
  0 your 0 /family 0
    What sort of person comes to mind when you say {4}?
    Who else at home {5}?
    How do you get along with your {4}?
  0 your 0
    Your {3}, you say. Please tell me more.
    Your {3}: why does it come up now?
    Your {3}. What else belongs to the story?
    Does it mean much to you: your {3}?
can could
  0 can|could i 0
    Would you like me to be able to {4}?
    If I could {4}, what would you gain?
    I can do little more than ask. Could you {4} yourself?
  0 can|could you 0
    What keeps you from it, if you want to {4}?
    Who decides if you can {4}?
    Do you want to be able to {4}?
  =what
/task: write explain translate summarize summarise calculate generate implement fix debug
ABOUT
    I am ELIZA, a program after Joseph Weizenbaum's of 1966, embedded in Chorus. I understand nothing: I look
      for keywords and turn your own words around. For a real model, set a provider's key in the environment,
      start Ollama or name a model file; Chorus's first lines tell how.
    Only ELIZA, a few pages of pattern rules from 1966. Nothing here thinks or understands. For a real
      model, set a provider's key in the environment, start Ollama or name a model file.
    A program that seemed clever in 1966 and never was: ELIZA. To be understood you need a real model: set
      a provider's key in the environment, start Ollama or name a model file.
BEYOND
    That is beyond me. I am ELIZA, a program of 1966 that knows nothing and only rearranges your words. A real
      model can do it: set a provider's key in the environment, start Ollama or name a model file.
    I cannot do that: ELIZA has rules about keywords and nothing else. Set a provider's key, start Ollama
      or name a model file, and a real model answers here in my place.
CRISIS
    I am only a program and cannot help with this, but people can. Please talk to somebody you trust now, or
      call your local emergency number or a crisis line.
eliza weizenbaum chatgpt gpt claude gemini llm ai chatbot ollama openai anthropic 50
  =ABOUT
chorus 50
    Chorus is the terminal chat that I am embedded in; /help lists what it can do. I am ELIZA, a program of
      1966 that understands nothing and stands in until there is a real model.
model models 50
  0 what|which model|models 0
  0 my model|models 0
  0 are i 0
  0 language|real|better|another|ai model|models 0
    =ABOUT
  NEWKEY
# Requests to ELIZA.
help 20
  help 0
  please help 0
  0 can|could|will|would i 0 help 0
  0 you need 0 help 0
    =HELP
  NEWKEY
HELP
    I can listen, after a fashion: I am ELIZA, a program of 1966 that turns your words around and understands
      none of them. /help lists Chorus's commands; for a real model, set a provider's key, start
      Ollama or name a model file.
    There is little that I can do but ask you back. ELIZA is my name, and pattern rules are all I am. For real
      answers set a provider's key, start Ollama or name a model file, and for Chorus's commands type /help.
write explain translate summarize summarise calculate generate implement fix debug 5
  /task 0
  please /task 0
  0 can|could|will|would i 0 /task 0
    =BEYOND
  NEWKEY
tell 4
  tell you about myself 0
    =ABOUT
  tell you 0
    =BEYOND
  NEWKEY
# Subjects too serious for this program; a keyword with a rank of at least 100 is answered before earlier clauses.
suicide suicidal 100
  =CRISIS
kill die live end 100
  0 kill yourself 0
  0 you want to die 0
  0 you don't want to live 0
  0 end your life 0
    =CRISIS
  NEWKEY
understand 10
  0 i|i'm|i'd understand 0
  0 i don't|can't understand 0
    =ABOUT
  NEWKEY
"""
