#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants each kind of breach in a small tree and asks tidy.py to find it, at its line."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import tidy  # noqa: E402

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
CLEAN = {
    "src/layers.txt": "contract:\nbase: contract\nlog: base\nstore/*: base\ncli: log store/*\n",
    "src/base/README.md": "# base\n",
    "src/base/a.h": SPDX + "#pragma once\n\nint a();\n",
    "src/base/a.cc": SPDX + '#include "base/a.h"\n\nint a() { return 1; }\n',
    "include/once/x.h": SPDX + "#pragma once\n\n#include <once/y.h>\n",
    "include/once/y.h": SPDX + "#pragma once\n\n#include <tl/expected.hpp>\n",
    "README.md": "# Title\n\n[base](src/base/README.md#base) and [code](src/base)\n",
    ".clang-format": "BasedOnStyle: Google\nColumnLimit: 100\n",
}


class TidyTest(unittest.TestCase):
    def breaches(self, planted):
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**CLEAN, **planted}.items():
                path = os.path.join(root, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            return tidy.breaches(root)

    def finds(self, planted, name, line, part):
        found = self.breaches(planted)
        self.assertTrue(any(n == name and at == line and part in message
                            for n, at, message in found), found)

    def test_a_clean_tree_has_no_breach(self):
        self.assertEqual(self.breaches({}), [])

    def test_an_include_against_the_arrow(self):
        self.finds({"src/base/a.cc": SPDX + '#include "log/b.h"\n'}, "src/base/a.cc", 2,
                   "base may not include log")

    def test_an_include_of_a_sibling(self):
        self.finds({"src/store/memory/m.cc": SPDX + '#include "store/sqlite/s.h"\n'},
                   "src/store/memory/m.cc", 2, "may not include store/sqlite")

    def test_an_include_of_ours_in_a_public_header(self):
        self.finds({"include/once/x.h": SPDX + '#include "base/a.h"\n'}, "include/once/x.h", 2,
                   "may not include base/a.h")

    def test_a_foreign_include_in_a_public_header(self):
        self.finds({"include/once/x.h": SPDX + "#include <fmt/format.h>\n"}, "include/once/x.h", 2,
                   "may not include fmt/format.h")

    def test_a_long_function_also_in_a_class_and_after_an_initialiser(self):
        body = "  a();\n" * 70
        self.finds({"src/base/a.cc": SPDX + "int a() {\n" + body + "}\n"}, "src/base/a.cc", 2,
                   "function has 72 lines")
        self.finds({"src/base/a.cc": SPDX + "class A {\n  A() : b_{1} {\n" + body + "  }\n};\n"},
                   "src/base/a.cc", 3, "function has 72 lines")

    def test_a_function_of_seventy_lines_is_allowed(self):
        text = SPDX + '#include "base/a.h"\n\nint a() {\n' + "  a();\n" * 68 + "}\n"
        self.assertEqual(self.breaches({"src/base/a.cc": text}), [])

    def test_a_long_file_and_a_long_line(self):
        self.finds({"src/base/a.cc": SPDX + "\n" * 801}, "src/base/a.cc", 802, "file has 802")
        self.finds({"src/base/a.cc": SPDX + "// " + "x" * 98 + "\n"}, "src/base/a.cc", 2,
                   "line has 101 columns")

    def test_a_try_that_leaks_a_braced_list(self):
        text = SPDX + "void f() {\n  A a{b(), ONCE_TRY(c())};\n}\n"
        self.finds({"src/base/a.cc": text}, "src/base/a.cc", 3, "ONCE_TRY behind")
        for line in ("A a{ONCE_TRY(c())};", "g(b(), ONCE_TRY(c()));",
                     "A a{[]() { ONCE_TRY(c()); }};", "for (A x : {1, 2}) ONCE_TRY(c(x));"):
            text = SPDX + '#include "base/a.h"\n\nvoid f() {\n  ' + line + "\n}\n"
            found = [b for b in self.breaches({"src/base/a.cc": text}) if "ONCE_TRY" in b[2]]
            self.assertEqual(found, [])

    def test_a_wide_interface(self):
        text = SPDX + "class A {\n" + "".join(
            f"  virtual void f{i}() = 0;\n" for i in range(6)) + "};\n"
        self.finds({"src/base/a.h": text}, "src/base/a.h", 2, "6 pure virtuals")

    def test_too_many_public_headers(self):
        many = {f"include/once/h{i:02}.h": SPDX for i in range(23)}
        self.finds(many, "include/once/y.h", 1, "25 public headers")

    def test_a_leftover_marker(self):
        self.finds({"src/base/a.cc": SPDX + "// TO" + "DO: later\n"}, "src/base/a.cc", 2, "marker")

    def test_documents(self):
        self.finds({"README.md": "# A\n\n# B\n"}, "README.md", 3, "second")
        self.finds({"README.md": "A\n"}, "README.md", 1, "begins with")
        self.finds({"README.md": "# A\n[b](docs/b.md)\n"}, "README.md", 2, "no such file")
        self.finds({"README.md": "# A\n[b](src/base/README.md#c)\n"}, "README.md", 2, "heading")
        self.assertEqual(self.breaches({"README.md": "# A\n```\n# not a title\n```\n"}), [])

    def test_dead_and_unnamed_files(self):
        self.finds({"src/base/b.h": SPDX + "#pragma once\n"}, "src/base/b.h", 1, "included by no")
        self.finds({"tools/old.sh": "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"},
                   "tools/old.sh", 1, "used by no other file")
        self.finds({"src/base/a.cc": "int a();\n"}, "src/base/a.cc", 1, "SPDX")
        self.finds({"src/log/CMakeLists.txt": ""}, "src/log/README.md", 1, "missing")

    def test_a_source_in_no_target(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "src/base"))
            for name, text in {"src/base/a.cc": SPDX, "compile_commands.json": "[]"}.items():
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write(text)
            self.assertIn(("src/base/a.cc", 1, "in no target"), tidy.breaches(root, root))

    def test_points_and_mutants(self):
        point = SPDX + "enum class Point : char {\n  here,  // why\n  count_\n};\n"
        self.finds({"src/base/failpoint.h": point}, "src/base/failpoint.h", 3, "passed 0 times")
        twice = SPDX + "void f() {\n  ONCE_POINT(here);\n  ONCE_POINT(here);\n}\n"
        self.finds({"src/base/failpoint.h": point, "src/base/a.cc": twice},
                   "src/base/failpoint.h", 3, "passed 2 times")
        self.finds({"src/base/failpoint.h": point}, "src/base/failpoint.h", 3, "crash matrix")
        mutant = SPDX + "enum class Mutant : char { none, bug };\n"
        self.finds({"src/base/mutant.h": mutant}, "src/base/mutant.h", 2, "nowhere in src")
        self.finds({"src/base/mutant.h": mutant}, "src/base/mutant.h", 2, "mutation test")

    def test_tags_of_errors_are_those_of_the_list(self):
        page = "# Errors\n\n| `away` | gone | wait |\n"
        self.assertEqual(self.breaches({"docs/errors.md": page, "src/base/b.cc": SPDX +
                                        'int b() { return f(Remedy::retry, "away"); }\n'}), [])
        self.finds({"docs/errors.md": page}, "docs/errors.md", 3, "used nowhere")
        self.finds({"docs/errors.md": page, "src/base/b.cc": SPDX + "\n" +
                    'int b() { return f(Remedy::stop,\n                   "odd"); }\n'},
                   "src/base/b.cc", 3, "tag odd is not in")
        self.finds({"docs/errors.md": "# Errors\n\n| `away` | gone | |\n"}, "docs/errors.md", 3,
                   "needs its meaning")

    def test_schemes_are_compared_by_adapters_alone(self):
        for line in ('bool f() { return url.scheme == "sea"; }',
                     'bool f() { return url.scheme.starts_with("sea"); }',
                     'bool f() { return store_url.starts_with("sea:"); }'):
            self.finds({"src/cli/a.cc": SPDX + line + "\n"}, "src/cli/a.cc", 2, "compares a scheme")
            self.assertFalse([found for found in self.breaches({"src/wire/sea/a.cc": SPDX + line})
                              if "scheme" in found[2]])

    @unittest.skipUnless(tidy.shutil.which(tidy.CLANG_FORMAT), "clang-format is not here")
    def test_a_file_that_is_not_formatted(self):
        self.finds({"src/base/a.cc": SPDX + "int   a( );\n"}, "src/base/a.cc", 2, "clang-format")


if __name__ == "__main__":
    unittest.main()
