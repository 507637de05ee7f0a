"""Reports as programs print them."""

from __future__ import annotations

PYTHON = """\
Traceback (most recent call last):
  File "/srv/app.py", line 12, in <module>
    main()
    ~~~~^^
  File "/srv/app.py", line 8, in main
    return 1 / 0
           ~~^~~
ZeroDivisionError: division by zero"""
PYTHON_CHAINED = f"""\
{PYTHON}

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/app.py", line 14, in <module>
    raise SystemError
SystemError"""
PYTHON_INDENTED = """\
    Traceback (most recent call last):
      File "<stdin>", line 1, in <module>
    KeyError: 'x'"""
PYTHON_GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "eg.py", line 1, in <module>
  |     raise ExceptionGroup("eg", [ValueError(1)])
  | ExceptionGroup: eg (1 sub-exception)
  +-+---------------- 1 ----------------
    | ValueError: 1
    +------------------------------------"""
PYTHON_SYNTAX = """\
  File "app.py", line 3
    def f(:
          ^
SyntaxError: invalid syntax"""
JAVA = """\
Exception in thread "main" java.lang.IllegalStateException: no
\tat com.example.App.run(App.java:12)
\tat com.example.App.main(App.java:5)
Caused by: java.io.IOException: disk
\tat com.example.Disk.read(Disk.java:99)
\t... 2 more"""
NODE = """\
TypeError: Cannot read properties of undefined (reading 'x')
    at Object.<anonymous> (/srv/app.js:3:13)
    at node:internal/main/run_main_module:28:49"""
BROWSER = """\
Uncaught (in promise) Error: two
lines
    at async load (https://example.org/app.js:1:2)"""
RUST = """\
thread 'main' panicked at src/main.rs:4:5:
index out of bounds: the len is 3 but the index is 99
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"""
RUST_OLD = "thread 'main' panicked at 'no', src/main.rs:2:5"
GO_PANIC = """\
panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]

goroutine 1 [running]:
main.main()
\t/tmp/x.go:5 +0x1d
exit status 2"""
GCC = """\
main.c:10:5: error: expected ';' before 'return'
   10 |     return 0
      |     ^~~~~~
main.c:12:1: warning: control reaches end of non-void function
main.c:11:2: note: declared here"""
RUSTC = """\
error[E0425]: cannot find value `x` in this scope
 --> src/main.rs:2:5
  |
2 |     x
  |     ^ not found in this scope

error: aborting due to 1 previous error"""
RUSTC_NO_CODE = """\
error: expected one of `.`, `;`, `?`
 --> src/main.rs:2:6"""
TSC = "src/a.ts(10,5): error TS2322: Type 'string' is not assignable to type 'number'."
TSC_PRETTY = "src/a.ts:10:5 - error TS2322: Type 'string' is not assignable to type 'number'."
MYPY = """\
app/core.py:3: error: Incompatible return value type  [return-value]
app/core.py:9: note: See the documentation
Found 1 error in 1 file (checked 2 source files)"""
JAVAC = """\
App.java:3: error: ';' expected
    int x = 1
             ^
1 error"""

PYTEST = """\
=========================== short test summary info ============================
FAILED tests/test_a.py::test_x - assert 1 == 2
========================= 3 failed, 5 passed in 0.2s ========================="""
PYTEST_PASSED = "============================== 1 passed, 2 warnings in 62.01s (0:01:02) =============================="
UNITTEST = "Ran 5 tests in 0.001s\n\nFAILED (failures=1, errors=2)"
UNITTEST_OK = "Ran 1 test in 0.000s\n\nOK"
CARGO = """\
failures:
    tests::it_fails

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s"""
GO_TEST = """\
--- FAIL: TestAdd (0.00s)
    add_test.go:8: got 3, want 4
FAIL
FAIL\texample.com/add\t0.002s
ok  \texample.com/sub\t(cached)"""
GO_OK = "ok  \texample.com/add\t0.012s"
JEST = """\
Test Suites: 1 failed, 2 passed, 3 total
Tests:       1 failed, 3 passed, 4 total
Snapshots:   0 total
Time:        1.2 s"""
VITEST = """\
 Test Files  1 failed | 1 passed (2)
      Tests  1 failed | 3 passed (4)
   Start at  10:00:00"""
MOCHA = """\
  3 passing (12ms)
  1 failing"""

TRACEBACKS = (PYTHON, PYTHON_CHAINED, PYTHON_INDENTED, PYTHON_GROUP, PYTHON_SYNTAX, JAVA, NODE, BROWSER)
PANICS = (RUST, RUST_OLD, GO_PANIC)
ERRORS = (*TRACEBACKS, *PANICS, GCC, RUSTC, RUSTC_NO_CODE, TSC, TSC_PRETTY, MYPY, JAVAC)
RESULTS = (PYTEST, PYTEST_PASSED, UNITTEST, UNITTEST_OK, CARGO, GO_TEST, GO_OK, JEST, VITEST, MOCHA)

TALK = (
    "error: I do not know what to do",
    "Error: it failed again.\nWhat now?",
    "It failed with error[E0425], I think.",
    "3 failed, 5 passed in 0.2s, said the colleague.",
    "3 failed, 5 passed in 0.2s",
    "I got a TypeError: foo\nat the office (again)",
    "TypeError: x is not a function",
    "Traceback (most recent call last):\n  and so on",
    "A `Traceback (most recent call last):` line comes first.",
    "panic: do not!\n\nkeep calm",
    "Ran 5 tests in the morning\n\nOK",
    "ok  then, see you in 2s",
    "Tests: all of them, 3 total",
    "12:30:15: error: the server said no",
    "example.com:443: error: connection refused",
    "see main.c:10:5: error: expected ';'",
    "test result: ok. 0 passed; 0 failed; 0 ignored",
    "```one line of code```",
    "```sh\nls\n```",
    "```py\na\nb\n\n\n```",
    "```py\nimport os\nprint(1)\nprint(2)",
    "~~~\na\nb\nc\n```",
    "    indented\n    code\n    of three lines",
)
