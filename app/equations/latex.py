"""A system of equations as LaTeX, from its trees alone: nothing of the text gets through."""

from app.equations.system import System
from app.equations.tree import Apply, Expression, Name, Number

GREEK = frozenset(
    (
        *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"),
        *("mu", "nu", "xi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega"),
        *("Gamma", "Delta", "Theta", "Lambda", "Xi", "Sigma", "Phi", "Psi", "Omega"),
    )
)
KNOWN = frozenset(["sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "min", "max"])
WORDS = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "sign": "sgn"}
SUM, PRODUCT, POWER, ATOM = 1, 2, 3, 4  # how tightly a form holds together
COMPARED = {"<": "<", "<=": r"\le", ">": ">", ">=": r"\ge", "and": r"\wedge", "or": r"\vee"}


def latex(system: System) -> str:
    """Return the equations, one below the other, with what they define."""
    lines = [
        f"{derivative(state)} &= {written(slope)[0]}"
        for state, slope in zip(system.states, system.slopes, strict=True)
    ]
    lines += [rf"{symbol(name)} &= {written(tree)[0]}" for name, tree in system.definitions]
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"


def derivative(state: str) -> str:
    """Return the derivative of a state by time: with a dot, or as a fraction before long names."""
    name = symbol(state)
    if name.startswith(r"\mathrm"):
        return rf"\tfrac{{\mathrm{{d}}}}{{\mathrm{{d}}t}}\,{name}"
    return rf"\dot{{{name}}}"


def symbol(name: str) -> str:
    """Return a name: Greek letters as such, digits at the end and what follows `_` below."""
    head, _, below = name.partition("_")
    if not below:
        head = name.rstrip("0123456789_") or name
        below = name[len(head) :].strip("_")
    below = below.replace("_", ",")
    head = r"\lambda" if head == "lam" else rf"\{head}" if head in GREEK else head
    if len(head) > 1 and not head.startswith("\\"):
        head = rf"\mathrm{{{head}}}"
    return rf"{head}_{{\mathrm{{{below}}}}}" if below else head


def number(value: float) -> str:
    """Return a number, large and small ones by a power of ten."""
    text = f"{value:.12g}"
    digits, _, power = text.partition("e")
    if not power:
        return digits
    return rf"10^{{{int(power)}}}" if digits == "1" else rf"{digits} \cdot 10^{{{int(power)}}}"


def written(tree: Expression) -> tuple[str, int]:
    """Return an expression and how tightly it holds together."""
    if isinstance(tree, Number):
        if tree.word:
            return {"pi": r"\pi"}.get(tree.word, tree.word), ATOM
        text = number(tree.value)
        return text, PRODUCT if "cdot" in text else POWER if "^" in text else ATOM
    if isinstance(tree, Name):
        return symbol(tree.name), ATOM
    return operation(tree)


def inside(tree: Expression, least: int) -> str:
    """Return an expression, in brackets if it holds together less than that."""
    text, tight = written(tree)
    return text if tight >= least else rf"\left({text}\right)"


def operation(tree: Apply) -> tuple[str, int]:
    """Return an operation."""
    name, parts = tree.operation, tree.parts
    if name in ("+", "-"):
        right = inside(parts[1], SUM if name == "+" else PRODUCT)
        return f"{inside(parts[0], SUM)} {name} {right}", SUM
    if name == "*":
        first = parts[0]
        signed = isinstance(first, Apply) and first.operation == "neg"
        left, right = inside(first, SUM if signed else PRODUCT), inside(parts[1], PRODUCT)
        between = r" \cdot " if right[:1].isdigit() else r" \, "
        return f"{left}{between}{right}", SUM if signed else PRODUCT
    if name == "/":
        return rf"\frac{{{written(parts[0])[0]}}}{{{written(parts[1])[0]}}}", PRODUCT
    if name == "neg":
        return f"-{inside(parts[0], PRODUCT)}", SUM
    if name == "**":
        return rf"{{{inside(parts[0], ATOM)}}}^{{{written(parts[1])[0]}}}", POWER
    if name in COMPARED:
        left, right = (inside(part, SUM) for part in parts)
        return rf"{left} {COMPARED[name]} {right}", 0
    if name == "not":
        return rf"\neg\,{inside(parts[0], ATOM)}", 0
    texts = [written(part)[0] for part in parts]
    return call(name, texts), ATOM


def call(name: str, texts: list[str]) -> str:
    """Return a function of what is written already."""
    if name == "sqrt":
        return rf"\sqrt{{{texts[0]}}}"
    if name == "abs":
        return rf"\left|{texts[0]}\right|"
    if name == "floor":
        return rf"\left\lfloor {texts[0]} \right\rfloor"
    if name == "where":
        condition, first, second = texts
        return rf"\begin{{cases}} {first} & {condition} \\ {second} & \text{{else}} \end{{cases}}"
    if name == "log10":
        return rf"\log_{{10}}\left({texts[0]}\right)"
    word = WORDS.get(name, name)
    known = name in KNOWN or word.startswith("arc")
    return (rf"\{word}" if known else rf"\operatorname{{{word}}}") + (
        rf"\left({', '.join(texts)}\right)"
    )
