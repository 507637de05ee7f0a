"""Words that name no subject, in lower case and without accents, of languages in which people write to models.

A search leaves out the words in ``GRAMMAR`` if it has others. Words in ``FUNCTION_WORDS`` and words of one or two
letters recall no memory item. If all other words of a message are ``GREETINGS``, it recalls no turn from before the
window. A missing language loses little: words that most texts have count little in a search, and recall no item.
"""

from __future__ import annotations

_ENGLISH = """
    about all although and any are aren because been being but can could couldn did didn does doesn doing don for
    from had hadn has hasn have haven having her here hers herself him himself his how into isn its itself may might
    mine must myself not our ours ourselves out shall she should shouldn some than that the their theirs them
    themselves then there these they this those though until was wasn were weren what when where which while who
    whom whose why will with would wouldn you your yours yourself yourselves
"""
_SHORT = """
    a am an as at be by d do he i if in is it ll m me my no of on or re s so t to up us ve we
"""
# Words that most requests to an assistant have
_REQUESTS = """
    above across add after again against almost along already also always among another anyone anything around ask
    away back before behind below between both came cannot change come done down during each either else enough even
    ever every everything explain few find first further get gets getting give given gives goes going gone good got
    great hello help hey however idea just keep know last least less let like look made make makes many maybe mean
    more most much mustn need needs neither never new next nor nothing now off often okay once one only onto other
    others over own per perhaps please problem put question quite rather read really right said same say says see
    seem seems show since someone something sorry still such sure take tell thank thanks thing things think through
    thus till time today too toward try trying two under understand upon use used using very via want wanted wants
    way well went whatever whether whole within without won work works write wrong yes yet
"""
_GERMAN = """
    aber alle als andere auch auf aus bei bekommen bevor bin bis bist bitte dafur danke dann daruber das dass davon
    dein dem den denke denken denkst denn der des dich die dies diese diesem diesen dieser dieses dir doch dort
    durch ein eine einem einen einer eines euch fur gegen geht gibt habe haben hast hat hatte hier ich ihm ihn ihr
    ihre immer ins ist jetzt kann kannst kein keine konnen mach machen macht mal man mein meine mich mir mit muss
    nach nicht nichts noch nun nur oder ohne sag sage sagen schon sehr sein seine sich sie sind soll uber und uns
    unser unter viel vom von vor waren warum weil wenn wer werden wie wieder wir wird wissen wurde zum zur zwischen
"""
_FRENCH = """
    ainsi alors apres aussi autre aux avec avoir avons bien bonjour ceci cela celle ces cet cette chez chose choses
    comme dans depuis dire dis dites donc elle elles encore entre est etait ete etre faire fait faites faut ici ils
    leur leurs lui mais merci mes moi moins mon nos notre nous ont par parce pas peut peux plait plus pour pourquoi
    pouvez pouvoir quand que quel quelle qui quoi sans ses son sont sous suis sur tes toi tous tout toute tres une
    vers veut veux voici vos votre vous
"""
# Spanish, Portuguese and Italian
_SOUTHERN = """
    ahora algo alla anche ancora antes aqui asi cada che chi com como con cosa cosas cual cuando dal dalla dar del
    della delle desde despues dio dois donde dos ela ele ella ellos entao eran eres esa ese eso essa esse esta estan
    estas este esto estoy fare favor foi fue gli gracias grazie hacer hasta hay isso isto las loro los mas meu mia
    mio mis muito muy nada nao nel nella noi nosso nuestro obrigado otra otro para pela pelo perche pero poi porque
    puede puedes qual quando questa questo quien quiero sao sei sem ser seu sia sin sobre solo sono sua sul suo sus
    tambem tambien tanto tem tengo tiempo tiene tudo tutti tutto uma una uno unos usted voce
"""
# Dutch, Swedish, Danish and Norwegian
_NORTHERN = """
    aan alleen andra att bij blev dat denna dese det detta deze dig dit doen door dus een efter eller ett fra geen
    gij haar heb hebben heeft het hij hoe hvad hvis hvor hvordan ikke inte jag jeg jij jou jouw kan kunnen maar mag
    mee meer mig mijn moet naar niet niets nog nogle och ons onze ook skal som tack takk tegen til toch tot uit van
    var vart veel vid vil voor vore waar waarom wat weg werd wij worden zal zei zich zij zijn zou
"""
# Words of the other languages that name a subject in English
_ALSO_ENGLISH = """
    bin den dies die hat man chose son tout pour con dal fare sin solo door dig hoe mag vid fur sei pas mes ont sur
    var mal
"""
_GREETINGS = """
    abend adios afternoon bonne bonsoir buenas buenos buonasera buongiorno bye ciao day dias evening goodbye gruss
    gute guten hallo hola moin morgen morning nacht night noches revoir salut soiree tag tardes weekend welcome
"""
_OTHERS = frozenset(f"{_GERMAN} {_FRENCH} {_SOUTHERN} {_NORTHERN}".split())

GRAMMAR = frozenset(f"{_ENGLISH} {_SHORT}".split()) | (_OTHERS - frozenset(_ALSO_ENGLISH.split()))
FUNCTION_WORDS = frozenset(f"{_ENGLISH} {_REQUESTS}".split()) | _OTHERS
GREETINGS = frozenset(_GREETINGS.split())
