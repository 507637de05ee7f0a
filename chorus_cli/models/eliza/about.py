"""ELIZA's script about itself: that it understands nothing, and how to use a real model.

The notation is that of ``script``, and rules see the text after its words were replaced, as in ``doctor``.
"""

from __future__ import annotations

SELF = """
# The program.
/task: write explain translate summarize summarise calculate generate implement fix debug
ABOUT
  0
    I am ELIZA, a program after Joseph Weizenbaum's of 1966, embedded in Chorus. I understand nothing: I look
      for keywords and turn your own words around. For a real model, set a provider's key in the environment,
      start Ollama or name a model file; the first lines of Chorus tell how.
    Only ELIZA, a few pages of pattern rules from 1966. Nothing here thinks or understands. A real model comes
      with a key in the environment, with a running Ollama or in a file.
    A program that seemed clever in 1966 and never was: ELIZA. Whoever wants understanding needs a real model,
      by a key in the environment, by Ollama or by a model file.
BEYOND
  0
    That is beyond me. I am ELIZA, a program of 1966 that knows nothing and only rearranges your words. A real
      model can do it: set a provider's key in the environment, start Ollama or name a model file.
    I cannot do that: ELIZA has rules about keywords and nothing else. With a key in the environment, Ollama
      running or a model file named, a real model answers here in my place.
CRISIS
  0
    I am only a program and cannot help with this, but people can. Please talk to somebody you trust now, or
      call your local emergency number or a crisis line.

# Questions about it.
eliza weizenbaum chatgpt gpt claude gemini llm ai chatbot 50
  =ABOUT
chorus 50
  0
    Chorus is the terminal chat that I am embedded in; /help lists what it can do. I am ELIZA, a program of
      1966 that understands nothing and stands in until there is a real model.
ollama openai anthropic 50
  0
    I am not that: I am ELIZA, of 1966. Chorus uses a real model as soon as there is a provider's key in the
      environment, Ollama is running or a model file is named; its first lines tell how.
model models 50
  0 what|which model|models 0
    =ABOUT
  0 my model|models 0
    =ABOUT
  0 are i 0
    =ABOUT
  0 language|real|better|another|ai model|models 0
    =ABOUT
  0
    NEWKEY

# Requests to it.
help 20
  help 0
    =HELP
  please help 0
    =HELP
  0 can|could|will|would i 0 help 0
    =HELP
  0 you need 0 help 0
    =HELP
  0
    NEWKEY
HELP
  0
    I can listen, after a fashion: I am ELIZA, a program of 1966 that turns your words around and understands
      none of them. /help lists the commands of Chorus; a real model comes with a key in the environment, a
      running Ollama or a model file.
    There is little that I can do but ask you back. ELIZA is my name, and pattern rules are all I am. For real
      answers set a provider's key, start Ollama or name a model file, and for the commands of Chorus type /help.
write explain translate summarize summarise calculate generate implement fix debug 5
  /task 0
    =BEYOND
  please /task 0
    =BEYOND
  0 can|could|will|would i 0 /task 0
    =BEYOND
  0
    NEWKEY
tell 4
  tell you about myself 0
    =ABOUT
  tell you 0
    =BEYOND
  0
    NEWKEY

# Subjects too serious for this program; from rank 100 on, an earlier clause does not hide them.
suicide suicidal 100
  =CRISIS
kill die live end 100
  0 kill yourself 0
    =CRISIS
  0 you want to die 0
    =CRISIS
  0 you don't want to live 0
    =CRISIS
  0 end your life 0
    =CRISIS
  0
    NEWKEY
understand 10
  0 i|i'm|i'd understand 0
    =ABOUT
  0 i don't|can't understand 0
    =ABOUT
  0
    NEWKEY
"""
