// New elements, of HTML (without a space) and of SVG.

const SVG = "http://www.w3.org/2000/svg";

function made(space, tag, attributes, ...children) {
  const element = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
