// Renders the formulas that pymdownx.arithmatex marks, such as <span class="arithmatex">\(x\)</span>.
for (const element of document.querySelectorAll(".arithmatex")) {
  const latex = element.textContent.trim()
  katex.render(latex.slice(2, -2), element, { displayMode: latex.startsWith("\\["), throwOnError: false })
}
