"""A deterministic Python program: containers, classes, regular expressions, JSON, subprocess-free."""
import json
import re
import sys


class Node:
    def __init__(self, number, parent):
        self.number = number
        self.parent = parent
        self.children = []


def tree(count):
    nodes = [Node(0, None)]
    for number in range(1, count):
        parent = nodes[number * 7919 % len(nodes)]
        node = Node(number, parent)
        parent.children.append(node)
        nodes.append(node)
    return nodes


def main():
    total = 0
    for turn in range(5):
        nodes = tree(3000)
        words = {f"word{i * 31 % 2003}": [i] * (i % 50) for i in range(4000)}
        text = json.dumps(words)
        total += len(re.findall(r"word\d+7", text)) + len(json.loads(text)) + len(nodes)
        blob = bytearray()
        for i in range(300):
            blob += bytes(i * 10)
        total += len(blob)
    print(total)


sys.exit(main())
