#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The house rules that a compiler does not check. Prints `file:line: message` for each breach.

    tools/tidy.py [--root DIR] [--build DIR]

With a build directory, every source must be compiled there. docs/style.md explains the rules.
"""
import argparse
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 800
LINE_COLUMNS_MAX = 100
PURE_VIRTUALS_MAX = 5
PUBLIC_HEADERS_MAX = 24
CLANG_FORMAT = "clang-format-14"

# In pieces, so that this file does not break its own rule.
MARKERS = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b|not impl"
                     + r"emented", re.I)


class Tree:
    """The files of the project, read once."""

    def __init__(self, root):
        self.root = root
        self.names = sorted(self._list())
        self.texts = {}

    def _list(self):
        try:
            out = subprocess.run(
                ["git", "-C", self.root, "ls-files", "--cached", "--others", "--exclude-standard"],
                capture_output=True, text=True, check=True).stdout
            names = out.splitlines()
        except (OSError, subprocess.CalledProcessError):
            names = []
            for folder, folders, files in os.walk(self.root):
                folders[:] = [f for f in folders if f not in (".git", "build")]
                names += [os.path.relpath(os.path.join(folder, f), self.root) for f in files]
        return [n for n in names if os.path.isfile(os.path.join(self.root, n))]

    def text(self, name):
        if name not in self.texts:
            with open(os.path.join(self.root, name), encoding="utf-8", errors="replace") as file:
                self.texts[name] = file.read()
        return self.texts[name]

    def lines(self, name):
        return self.text(name).split("\n")

    def match(self, *patterns):
        return [n for n in self.names if any(fnmatch.fnmatch(n, p) for p in patterns)]

    def cpp(self):
        return self.match("*.h", "*.cc")


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def strip(code):
    """Comments and literals blanked, line breaks kept, so that braces can be counted."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]{0,16})\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.S | re.M)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), code)


# --- sizes ------------------------------------------------------------------------------------

def blocks(code):
    """The outermost functions and all classes: (kind, head, line of head, start, end)."""
    found, stack, head_at = [], [], 0
    for match in re.finditer(r"[{};]", code):
        char, at = match.group(0), match.start()
        if char == "{":
            head = code[head_at:at].strip()
            inside = any(entry[0] == "function" for entry in stack)
            kind = "other" if inside else kind_of(head)
            lead = len(code[head_at:at]) - len(code[head_at:at].lstrip())
            stack.append((kind, head, head_at + lead, at))
        elif char == "}" and stack:
            kind, head, start, open_at = stack.pop()
            if kind in ("function", "class"):
                found.append((kind, head, start, open_at, at))
        head_at = at + 1
    return found


def kind_of(head):
    plain = re.sub(r"\btemplate\s*<[^{}]*?>\s*(?=\w)", "", head)
    if re.match(r"(inline\s+)?namespace\b|extern\b\s*$", plain):
        return "scope"
    if re.match(r"(class|struct|union)\b", plain) and "(" not in plain.split(":")[0]:
        return "class"
    if re.match(r"enum\b", plain) or plain.endswith(("=", ",", "(", "return")):
        return "other"
    return "function"


def check_sizes(tree):
    for name in tree.cpp():
        text = tree.text(name)
        code = strip(text)
        count = len(text.splitlines())
        if count > FILE_LINES_MAX:
            yield name, count, f"file has {count} lines, at most {FILE_LINES_MAX}"
        for kind, head, start, open_at, end in blocks(code):
            if kind == "function":
                length = line_of(code, end) - line_of(code, start) + 1
                if length > FUNCTION_LINES_MAX:
                    yield (name, line_of(code, start),
                           f"function has {length} lines, at most {FUNCTION_LINES_MAX}")
            else:
                body = flat(code[open_at + 1:end])
                count = len(re.findall(r"\bvirtual\b[^;]*=\s*0\s*;", body))
                if count > PURE_VIRTUALS_MAX:
                    title = " ".join(head.split())
                    yield (name, line_of(code, start),
                           f"{title} has {count} pure virtuals, at most {PURE_VIRTUALS_MAX}")
    for name in tree.match("*.h", "*.cc", "*.py", "*.sh", "*.cmake", "*CMakeLists.txt"):
        for number, line in enumerate(tree.lines(name), 1):
            if len(line) > LINE_COLUMNS_MAX:
                yield name, number, f"line has {len(line)} columns, at most {LINE_COLUMNS_MAX}"
    headers = tree.match("include/once/*.h")
    if len(headers) > PUBLIC_HEADERS_MAX:
        yield headers[-1], 1, f"{len(headers)} public headers, at most {PUBLIC_HEADERS_MAX}"


def flat(body):
    """A class body without what is inside its braces."""
    out, depth = [], 0
    for char in body:
        depth += char == "{"
        if depth == 0:
            out.append(char)
        depth -= char == "}"
    return "".join(out)


# --- a trap -----------------------------------------------------------------------------------

def is_block(head):
    """Whether the brace after this text opens statements or declarations, not an initialiser."""
    head = head.strip()
    return (not head or head.endswith(")") or re.search(r"->\s*[\w:<>,*&\s]+$", head) or
            re.search(r"\b(else|do|try|const|override|noexcept|mutable|final)$", head) or
            re.match(r"(inline |typedef )?(class|struct|enum|union|namespace|extern|template)\b",
                     head))


def parentheses(code, at):
    return code.count("(", 0, at) - code.count(")", 0, at)


def check_try(tree):
    """Both compilers leak what a braced list already holds when ONCE_TRY returns out of it."""
    for name in tree.cpp():
        code, stack, head_at = strip(tree.text(name)), [], 0
        for match in re.finditer(r"[{};,]|\bONCE_TRY\(", code):
            found, at = match.group(0), match.start()
            if found == "{":
                inside = bool(stack) and stack[-1] is not None
                empty = not code[head_at:at].strip()
                block = is_block(code[head_at:at]) and not (inside and empty)
                stack.append(None if block else [0, parentheses(code, at)])
            elif found == "}" and stack:
                stack.pop()
            elif stack and stack[-1] is not None:
                if found == "," and parentheses(code, at) == stack[-1][1]:
                    stack[-1][0] += 1
                elif found not in ",;" and stack[-1][0] > 0:
                    yield name, line_of(code, at), "ONCE_TRY behind other elements of a braced list"
            if found in "{};":
                head_at = at + 1


# --- layers -----------------------------------------------------------------------------------

def read_layers(tree):
    """Folder pattern -> set of patterns it may include, closed under inclusion."""
    direct = {}
    for line in tree.lines("src/layers.txt"):
        line = line.split("#")[0].strip()
        if line:
            folder, _, allowed = line.partition(":")
            direct[folder.strip()] = allowed.split()
    closed = {}
    for folder in direct:
        seen, queue = set(), list(direct[folder])
        while queue:
            other = queue.pop()
            if other not in seen:
                seen.add(other)
                queue += direct.get(other, [])
        closed[folder] = seen
    return closed


def folder_of(path, layers):
    """The layer pattern and the actual folder of a path below src/."""
    parts = path.split("/")
    for depth in (2, 1):
        folder = "/".join(parts[:depth])
        for pattern in layers:
            if len(parts) > depth and fnmatch.fnmatch(folder, pattern) and \
                    pattern.count("/") == depth - 1:
                return pattern, folder
    return None, None


def check_layers(tree):
    if "src/layers.txt" not in tree.names:
        yield "src/layers.txt", 1, "missing"
        return
    layers = read_layers(tree)
    for name in tree.match("include/once/*.h"):
        for number, included in includes(tree, name):
            ours = included[1:].startswith("once/")
            if included[0] == '"' or ("/" in included and not ours and
                                      included != "<tl/expected.hpp"):
                yield name, number, f"a public header may not include {included[1:]}"
    for name in [n for n in tree.match("src/*.h", "src/*.cc")]:
        pattern, folder = folder_of(name[4:], layers)
        if pattern is None:
            yield name, 1, "its folder is not in src/layers.txt"
            continue
        for number, included in includes(tree, name):
            target = included[1:]
            if included[0] == "<" or name.endswith(("_test.cc", "_testing.h")):
                continue  # a test may use any adapter
            other, other_folder = folder_of(target, layers)
            if other is None:
                yield name, number, f'"{target}" is not a path from src/ to a layer'
            elif other_folder != folder and other not in layers[pattern]:
                yield name, number, f"{folder} may not include {other_folder} (src/layers.txt)"


def includes(tree, name):
    for number, line in enumerate(tree.lines(name), 1):
        match = re.match(r'\s*#\s*include\s*([<"][^>"]+)', line)
        if match:
            yield number, match.group(1)


# --- files ------------------------------------------------------------------------------------

def check_files(tree, build):
    compiled = set()
    if build:
        path = os.path.join(build, "compile_commands.json")
        if not os.path.exists(path):
            yield "CMakePresets.json", 1, f"no compile_commands.json in {build}"
        else:
            with open(path, encoding="utf-8") as file:
                compiled = {os.path.realpath(e["file"]) for e in json.load(file)}
    for name in tree.cpp() + tree.match("*.py", "*.sh"):
        lines = tree.lines(name)
        first = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0]
        if "SPDX-License-Identifier: Apache-2.0" not in first:
            yield name, 1, "the first line is not the SPDX line"
    for name in tree.match("*.cc"):
        if build and os.path.realpath(os.path.join(tree.root, name)) not in compiled \
                and not named_by_cmake(tree, name):
            yield name, 1, "in no target"
    everything = {n: tree.text(n) for n in tree.names if not n.endswith(".md")}
    for name in tree.match("src/*.h", "tests/*.h"):
        pattern = re.compile(r'#include "(?:[^"]*/)?' + re.escape(os.path.basename(name)) + '"')
        if not any(pattern.search(text) for other, text in everything.items() if other != name):
            yield name, 1, "included by no file"
    for name in tree.match("tools/*"):
        base = os.path.basename(name)
        is_module = os.path.dirname(name) != "tools" and name.endswith(".py")
        if base in ("README.md", "__init__.py"):
            continue
        used = re.compile(r"from \S*\b" + base[:-3] + " import" if is_module else re.escape(base))
        if not any(used.search(text) for other, text in everything.items() if other != name):
            yield name, 1, "used by no other file"
    for folder in sorted({os.path.dirname(n) for n in tree.match("src/*CMakeLists.txt")}):
        if folder + "/README.md" not in tree.names:
            yield folder + "/README.md", 1, "missing: what it is, what it may use, where to start"


def named_by_cmake(tree, name):
    """True if a CMakeLists.txt at or above the file names it or globs its kind."""
    folder, base = os.path.split(name)
    while True:
        listing = os.path.join(folder, "CMakeLists.txt") if folder else "CMakeLists.txt"
        if listing in tree.names:
            words = re.split(r"[\s()\"]+", tree.text(listing))
            below = os.path.relpath(name, folder or ".")
            return any(w == below or os.path.basename(w) == base or
                       ("*" in w and fnmatch.fnmatch(below, w)) for w in words if w)
        if not folder:
            return False
        folder = os.path.dirname(folder)


def check_markers(tree):
    for name in tree.names:
        if name.startswith("fuzz/corpus/") or name.endswith((".png", ".svg", ".db")):
            continue
        for number, line in enumerate(tree.lines(name), 1):
            match = MARKERS.search(line)
            if match:
                yield name, number, f"leftover marker {match.group(0)}"


# --- documents --------------------------------------------------------------------------------

def prose(text):
    """Lines of a document outside fenced code."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"\s*(```|~~~)", line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def slug(title):
    title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def anchors(text):
    return {slug(m.group(1)) for _, line in prose(text)
            if (m := re.match(r"#{1,6}\s+(.*)", line))}


def check_documents(tree):
    for name in tree.match("*.md"):
        text = tree.text(name)
        titles = [number for number, line in prose(text) if re.match(r"# \S", line)]
        if titles[:1] != [1]:
            yield name, 1, "a document begins with its `# Title`"
        for number in titles[1:]:
            yield name, number, "a second `# Title`"
        for number, line in prose(text):
            line = re.sub(r"`[^`]*`", "", line)
            for target in re.findall(r"\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)", line):
                problem = broken(tree, name, target)
                if problem:
                    yield name, number, problem


def broken(tree, name, target):
    if re.match(r"[a-z]+:", target):
        return None
    path, _, anchor = target.partition("#")
    full = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
    if full not in tree.names and not any(n.startswith(full + "/") for n in tree.names):
        return f"link to {target}: no such file"
    if anchor and full.endswith(".md") and anchor not in anchors(tree.text(full)):
        return f"link to {target}: no such heading"
    return None


# --- failpoints and mutants -------------------------------------------------------------------

def enumerators(tree, name, enum):
    """(line, name) of each enumerator but `none` and `count_`."""
    if name not in tree.names:
        return
    code = strip(tree.text(name))
    match = re.search(r"enum class " + enum + r"\b[^{]*\{([^}]*)\}", code)
    if not match:
        return
    for item in re.finditer(r"\w+", match.group(1)):
        if item.group(0) not in ("none", "count_"):
            yield line_of(code, match.start(1) + item.start()), item.group(0)


def check_points(tree):
    header = "src/base/failpoint.h"
    sources = {n: strip(tree.text(n)) for n in tree.match("src/*.h", "src/*.cc")
               if not n.endswith("_test.cc") and n != header}
    matrix = "".join(tree.text(n) for n in tree.match("tests/crash/*"))
    for number, point in enumerators(tree, header, "Point"):
        # Adapters of one interface may pass the same point, each once.
        uses = {}
        for name, text in sources.items():
            count = len(re.findall(rf"\bONCE_POINT\({point}\)", text))
            folder = os.path.dirname(name)
            uses[folder] = uses.get(folder, 0) + count
        wrong = [count for count in uses.values() if count > 1]
        if wrong or not any(uses.values()):
            yield header, number, f"point {point} is passed {sum(uses.values())} times, not once"
        if not re.search(rf"\b{point}\b", matrix):
            yield header, number, f"point {point} is not in the crash matrix (tests/crash)"


def check_mutants(tree):
    header = "src/base/mutant.h"
    sources = "".join(strip(tree.text(n)) for n in tree.match("src/*.h", "src/*.cc")
                      if not n.endswith("_test.cc") and n != header)
    suite = "".join(tree.text(n) for n in tree.match("tests/mutation/*"))
    for number, mutant in enumerators(tree, header, "Mutant"):
        if not re.search(rf"\bMutant::{mutant}\b", sources):
            yield header, number, f"mutant {mutant} is nowhere in src"
        if not re.search(rf"\b{mutant}\b", suite):
            yield header, number, f"mutant {mutant} is not in the mutation test (tests/mutation)"


# --- tags of errors -----------------------------------------------------------------------------

TAG_USED = re.compile(r'Remedy::\w+,\s*"([a-z_0-9]+)"|tag\s*(?:==|!=|=)\s*"([a-z_0-9]+)"'
                      r'|error_at\([^,"]+,\s*"([a-z_0-9]+)"')
TAG_LIST = "docs/errors.md"
NO_TAGS = ("*_test.cc", "*_testing.h", "src/cli/demo/*", "src/testing/*")


def check_tags(tree):
    """Each tag that an error can have is in the list, with its meaning and what helps."""
    if TAG_LIST not in tree.names:
        return
    listed, used = {}, {}
    for number, line in enumerate(tree.text(TAG_LIST).splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        for tag in re.findall(r"`([a-z_0-9]+)`", cells[0]) if line.startswith("| `") else []:
            if tag in listed:
                yield TAG_LIST, number, f"tag {tag} is there twice"
            listed[tag] = number
            if len(cells) != 3 or not all(cells):
                yield TAG_LIST, number, f"tag {tag} needs its meaning and what helps"
    exempt = set(tree.match(*NO_TAGS))
    for name in tree.match("src/*.h", "src/*.cc", "include/*.h"):
        if name in exempt:
            continue
        text = tree.text(name)
        for match in TAG_USED.finditer(text):
            tag = next(filter(None, match.groups()))
            used.setdefault(tag, (name, line_of(text, match.start())))
    for tag in sorted(set(used) - set(listed)):
        yield used[tag][0], used[tag][1], f"tag {tag} is not in {TAG_LIST}"
    for tag in sorted(set(listed) - set(used)):
        yield TAG_LIST, listed[tag], f"tag {tag} is used nowhere"


# What is special about the URLs of an adapter is said in its row (src/model/adapter.h).
SCHEME = re.compile(r'scheme\s*[!=]=\s*"|"\s*[!=]=\s*\w*\.?scheme\b|scheme\.(starts|ends)_with\("|'
                    r'\b\w*url\w*\.starts_with\("\w+:')
KNOW_SCHEMES = ("src/log/*", "src/store/*", "src/wire/*", "src/base/url.cc", "*_test.cc")


def check_schemes(tree):
    exempt = set(tree.match(*KNOW_SCHEMES))
    for name in tree.match("src/*.h", "src/*.cc"):
        if name in exempt:
            continue
        for number, line in enumerate(tree.text(name).splitlines(), 1):
            if SCHEME.search(line):
                yield name, number, "compares a scheme: ask the row of the adapter (src/open)"


# --- format -----------------------------------------------------------------------------------

def check_format(tree):
    files = tree.cpp()
    if not files:
        return
    if not shutil.which(CLANG_FORMAT):
        print(f"tidy: {CLANG_FORMAT} is not here: the format was not checked")
        return
    done = subprocess.run([CLANG_FORMAT, "--dry-run", "-Werror", "--style=file"] + files,
                          cwd=tree.root, capture_output=True, text=True, check=False)
    seen = set()
    for match in re.finditer(r"^([^:\n]+):(\d+):\d+: error:", done.stderr, re.M):
        if match.group(1) not in seen:
            seen.add(match.group(1))
            yield match.group(1), int(match.group(2)), "not as clang-format wants it (make format)"


def breaches(root, build=None):
    tree = Tree(root)
    found = []
    for check in (check_sizes, check_try, check_layers, check_markers, check_documents,
                  check_points, check_mutants, check_schemes, check_tags,
                  check_format):
        found += check(tree)
    found += check_files(tree, build)
    return sorted(set(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=os.path.join(os.path.dirname(__file__), ".."))
    parser.add_argument("--build")
    options = parser.parse_args()
    found = breaches(os.path.realpath(options.root), options.build)
    for name, line, message in found:
        print(f"{name}:{line}: {message}")
    print(f"tidy: {len(found)} breaches" if found else "tidy: clean")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
