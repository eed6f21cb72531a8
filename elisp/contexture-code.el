;;; contexture-code.el --- Definitions, and changes of code in its place  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-defun-at-point' finds the definition, section, block or cell
;; around point, in all modes in the same way.  The second half shows how a
;; buffer would change, in the buffer itself, until you accept or reject it.

;;; Code:

(require 'cl-lib)
(eval-when-compile (require 'rx))
(require 'contexture)
(eval-when-compile (require 'subr-x))

(declare-function add-log-current-defun "add-log" ())
(declare-function org-back-to-heading "org" (&optional invisible-ok))
(declare-function org-element-at-point "org-element" t)
(declare-function org-element-lineage "ext:org-element-ast" t t)
(declare-function org-element-property "ext:org-element-ast" t t)
(declare-function org-end-of-subtree "org" t)
(declare-function org-get-heading "org" t)
(declare-function rst-backward-section "rst" (offset))
(declare-function rst-forward-section "rst" (offset))
(declare-function treesit-defun-at-point "ext:treesit" ())
(declare-function treesit-node-children "ext:treesit" (node &optional named))
(declare-function treesit-node-end "ext:treesit.c" (node))
(declare-function treesit-node-parent "ext:treesit.c" (node))
(declare-function treesit-node-start "ext:treesit.c" (node))
(declare-function treesit-node-type "ext:treesit.c" (node))
(declare-function treesit-parent-until "ext:treesit" (node pred &optional include-node))
(declare-function treesit-parser-list "ext:treesit.c" (&optional buffer language tag))

;;; Sections, blocks and cells

;; What `contexture-defun-at-point' takes for a definition in text that
;; headings divide: a block, or the section with its heading.  Org says by
;; itself where they are.  And the cells of code that lines of "# %%" divide.

(defconst contexture-defun-prose--files "\\.\\(?:md\\|markdown\\|mkd\\|Rmd\\|qmd\\)\\'"
  "Regexp for the names of Markdown files, for an Emacs without a Markdown mode.")

(defun contexture-defun-prose--org ()
  "Return Org's block or subtree around point as (BEG END NAME KIND), or nil."
  (let* ((here (line-beginning-position))
         (block (org-element-lineage
                 (org-element-at-point)
                 '(src-block example-block export-block comment-block verse-block
                             quote-block center-block special-block dynamic-block)
                 t))
         (end (and block (save-excursion
                           (goto-char (org-element-property :end block))
                           (forward-line (- (org-element-property :post-blank block)))
                           (point)))))
    (if (and end (< here end))
        (list (org-element-property :begin block) end
              (or (org-element-property :name block) (org-element-property :language block))
              :block)
      (when (ignore-errors (org-back-to-heading t) t)
        (list (point)
              (save-excursion (org-end-of-subtree t t) (point))
              (substring-no-properties (org-get-heading t t t t))
              :section)))))

(defun contexture-defun-prose--blocks ()
  "Return the Markdown code blocks of this buffer, each as (BEG END NAME KIND).
NAME is the block's language, or nil.  A block without an end reaches beyond
the buffer, and its KIND is nil."
  (save-excursion
    (goto-char (point-min))
    (let (blocks)
      (while (re-search-forward
              "^[ \t]*\\(\\(?:```\\|~~~\\)[`~]*\\)[ \t]*\\([^`\n]*\\)$" nil t)
        (let ((start (line-beginning-position))
              (language (match-string-no-properties 2)))
          (if (re-search-forward
               (concat "^[ \t]*" (regexp-quote (match-string 1)) "[`~]*[ \t]*$") nil 'move)
              (progn (forward-line)
                     (push (list start (point)
                                 (and (string-match "[[:alnum:]_+-]+" language)
                                      (match-string 0 language))
                                 :block)
                           blocks))
            (push (list start (1+ (point-max)) nil nil) blocks))))
      blocks)))

(defun contexture-defun-prose--block (blocks)
  "Return the one of BLOCKS around point, or nil."
  (let ((here (line-beginning-position)))
    (cl-find-if (pcase-lambda (`(,beg ,end . ,_)) (and (<= beg here) (< here end))) blocks)))

(defun contexture-defun-prose--section (blocks)
  "Return the Markdown section around point as (BEG END NAME KIND), or nil.
It begins with its heading, and NAME is the heading's text.  BLOCKS are the
code blocks of this buffer."
  (save-excursion
    (end-of-line)
    (when (contexture-defun-prose--heading #'re-search-backward blocks)
      (let ((start (point))
            (depth (length (match-string 1)))
            (name (contexture--trim-right (match-string-no-properties 2) " \t#")))
        (end-of-line)
        (while (and (contexture-defun-prose--heading #'re-search-forward blocks)
                    (> (length (match-string 1)) depth)))
        (unless (eobp) (forward-line 0))
        (list start (point) name :section)))))

(defun contexture-defun-prose--heading (search blocks)
  "Go to the next heading outside of BLOCKS, and return non-nil.
SEARCH is `re-search-forward' or `re-search-backward'.  Group 1 of the
match is the number signs of the heading, and group 2 the rest of its line.
If there is no heading, go to the end of the search and return nil."
  (let (found)
    (while (and (not found) (funcall search "^\\(#+\\)[ \t]+\\([^ \t\n].*\\)$" nil 'move))
      (setq found (not (contexture-defun-prose--block blocks))))
    found))

(defun contexture-defun-prose--rst ()
  "Return the section around point in RST as (BEG END NAME KIND), or nil.
It ends at the next heading of any level, as Emacs sees these sections."
  (save-excursion
    (let ((bounds (progn (end-of-line)
                         (rst-backward-section 1)
                         (cons (point) (progn (rst-forward-section 1) (point))))))
      (goto-char (car bounds))
      ;; A line of marks may stand above a heading, too.
      (when (looking-at-p "[[:punct:]]+$") (forward-line))
      (unless (save-excursion (forward-line) (not (looking-at-p "[[:punct:]]+$")))
        (list (car bounds) (cdr bounds)
              (contexture--trim (buffer-substring-no-properties (point) (line-end-position)))
              :section)))))

(defun contexture-defun-prose--cell ()
  "Return the cell around point as (BEG END NAME KIND), or nil.
A cell begins with a line such as \"# %% NAME\" and ends before the next one."
  (let ((mark "^[ \t]*\\(?:#\\|//\\|--\\|;;\\|%\\)[ \t]*%%[ \t]*\\(.*\\)$"))
    (save-excursion
      (end-of-line)
      (when (re-search-backward mark nil t)
        (let ((start (point)) (name (contexture--trim (match-string-no-properties 1))))
          (end-of-line)
          (if (re-search-forward mark nil t) (forward-line 0) (goto-char (point-max)))
          (list start (point) (and (not (string-empty-p name)) name) :block))))))

;;; The definition around point

;; `contexture-defun-at-point' finds what a programmer calls a definition:
;; with its decorators, attributes and documentation comment, its name and
;; its kind.  A tree-sitter parser knows best where a definition is; else
;; the major mode, if it has rules of its own; else a line that looks like
;; the head of a definition, with the lines indented below it.  In Org and
;; Markdown it is a source block or the section with its heading, and in
;; code that is divided by "# %%" the cell.

;;;; Heads

(defconst contexture-defun--modifiers
  (rx (* (or (seq (or "export" "default" "public" "private" "protected" "internal"
                      "static" "final" "abstract" "async" "unsafe" "const" "virtual"
                      "inline" "override" "open" "sealed" "data" "partial" "declare"
                      "synchronized" "native" "constexpr" "explicit" "friend" "local"
                      "readonly" "typedef")
                  symbol-end)
             (seq "extern" (? (+ blank) "\"" (* (not (any "\""))) "\""))
             (seq "pub" (? "(" (* (not (any ")\n"))) ")"))
             (seq "template" (* blank) "<" (* (not (any ">\n"))) ">"))
         (+ blank)))
  "Regexp for the words that may come before the keyword of a definition.")

(defconst contexture-defun--name
  (rx (? (any "#~*")) (any alpha "_$") (* (any alnum "_$?!")) (* (or "::" "." ":")
                                                                 (any alpha "_$")
                                                                 (* (any alnum "_$?!"))))
  "Regexp for the name of a definition, such as \"module::function\".")

(defconst contexture-defun--keyword-kinds
  '(("def" . :function) ("defp" . :function) ("fn" . :function) ("func" . :function)
    ("fun" . :function) ("function" . :function) ("sub" . :function)
    ("proc" . :function) ("procedure" . :function)
    ("class" . :class) ("object" . :class) ("record" . :class) ("contract" . :class)
    ("struct" . :struct) ("union" . :struct) ("enum" . :enum)
    ("interface" . :interface) ("protocol" . :interface)
    ("trait" . :trait) ("impl" . :impl)
    ("module" . :module) ("mod" . :module) ("namespace" . :module)
    ("type" . :type) ("macro_rules!" . :macro) ("macro" . :macro))
  "Alist of (KEYWORD . KIND), where KEYWORD begins a definition of that kind.")

(defconst contexture-defun--keyword-head
  (concat "[ \t]*" contexture-defun--modifiers
          (regexp-opt (mapcar #'car contexture-defun--keyword-kinds) "\\(")
          "\\*?\\(?:[ \t]+\\|[ \t]*<[^>\n]*>[ \t]*\\)"
          "\\(?:<[^>\n]*>[ \t]*\\|class[ \t]+\\|([^()\n]*)[ \t]*\\)?" ; Go's receiver
          "\\(" contexture-defun--name "\\)")
  "Regexp for a head such as \"class NAME\"; its groups are keyword and name.")

(defconst contexture-defun--value-head
  (concat "[ \t]*" contexture-defun--modifiers "\\(?:\\(?:const\\|let\\|var\\)[ \t]+\\)?"
          "\\(" contexture-defun--name "\\)"
          "[ \t]*\\(?::[^=\n]*\\)?[=:][ \t]*\\(?:async[ \t]+\\)?"
          "\\(?:function\\_>\\|(.*=>\\|([ \t]*$\\|<[^>\n]*>(.*\\(?:=>\\|(\\)[ \t]*"
          "\\|[[:alpha:]_$][[:alnum:]_$]*[ \t]*=>\\)")
  "Regexp for a head such as \"NAME = function\"; its group is the name.")

(defconst contexture-defun--call-head
  (concat "[ \t]*" contexture-defun--modifiers
          "\\(?:\\(?:get\\|set\\|function\\)[ \t]+\\)?"
          "\\(?:[][:alnum:]_$<>,:.?&*[ \t]*[]>[:alnum:]_&*][ \t*&]+\\)?"
          "\\(" contexture-defun--name "\\)[ \t]*\\(?:<[^>\n]*>\\)?(")
  "Regexp for a head without a keyword, as of a method; its group is the name.")

(defconst contexture-defun--no-names
  '("if" "for" "while" "switch" "catch" "with" "return" "else" "do" "match" "foreach"
    "using" "lock" "new" "await" "throw" "typeof" "elif" "until" "unless" "case"
    "super" "sizeof" "defer" "go" "select" "loop" "assert" "function" "print")
  "Words that may precede a parenthesis without being a function's name.")

(defconst contexture-defun--lisp-head
  (rx (* blank) "(" (group (* (any alnum "_:/.-")) "def" (* (any alnum "_!*?-")))
      (+ (any " \t\n"))
      (* (or (seq "^" (+ (not (any " \n"))) (+ blank))))
      (* (any "('")) (group (+ (not (any " \t\n()\"")))))
  "Regexp for a definition in a Lisp; its groups are the operator and the name.")

(defconst contexture-defun--longest-head 300
  "Number of characters of a line in which a definition's head is sought.
In a longer one, Emacs would seek for minutes.")

(defun contexture-defun--head-here ()
  "Return (NAME . KIND) if a definition's head begins on this line, or nil.
Of a very long line, only the beginning counts."
  (save-excursion
    (save-match-data
      (let ((case-fold-search nil))
        (forward-line 0)
        (save-restriction
          (let ((end (+ (point) contexture-defun--longest-head)))
            (when (< end (line-end-position))
              (narrow-to-region (point) end)))
          (cond ((looking-at contexture-defun--lisp-head)
                 (cons (match-string-no-properties 2)
                       (contexture-defun--lisp-kind (match-string 1))))
                ((looking-at contexture-defun--keyword-head)
                 (contexture-defun--keyword-found))
                ((looking-at contexture-defun--value-head)
                 (cons (match-string-no-properties 1) :function))
                ((looking-at contexture-defun--call-head)
                 (contexture-defun--call-found))))))))

(defconst contexture-defun--heads-seconds 0.08
  "Maximum number of seconds in which to look for heads of definitions.")

(defun contexture-defun--heads ()
  "Return an alist from the names defined in this buffer to their positions.
In a very large buffer, the last ones are missing."
  (save-excursion
    (goto-char (point-min))
    (cl-loop with end = (+ (float-time) contexture-defun--heads-seconds)
             until (or (eobp) (> (float-time) end))
             for name = (car (contexture-defun--head-here))
             when name collect (cons name (copy-marker (point)))
             do (forward-line))))

(defconst contexture-defun--typed-call
  (concat "\\`[ \t*&]+" contexture-defun--name "[ \t]*(")
  "Regexp for the rest of a function's head whose value has the type before it.")

(defun contexture-defun--keyword-found ()
  "Return (NAME . KIND) for the match of `contexture-defun--keyword-head'.
Return nil if the line defines nothing, such as \"struct point;\"."
  (let* ((keyword (match-string 1))
         (name (match-string-no-properties 2))
         (kind (cdr (assoc keyword contexture-defun--keyword-kinds)))
         (line (buffer-substring-no-properties (point) (line-end-position)))
         ;; A modifier, or what is between "<" and ">", may have any sign.
         (rest (replace-regexp-in-string
                "\\`<[^>\n]*>" ""
                (buffer-substring-no-properties (match-end 2) (line-end-position)))))
    (cond ((and (eq kind :impl) (string-match "[ \t]for[ \t]+\\([^ {\n]+\\)" line))
           (cons (match-string 1 line) kind))
          ((and (eq kind :type)
                (string-match "\\_<\\(struct\\|interface\\)\\_>" line))
           (cons name (intern (concat ":" (match-string 1 line)))))
          ((and (equal keyword "func") (string-match "\\`[ \t]*func[ \t]*(" line))
           (cons name :method))
          ;; The function "struct point f(…)".
          ((and (memq kind '(:struct :enum))
                (string-match-p contexture-defun--typed-call rest))
           (and (looking-at contexture-defun--call-head)
                (contexture-defun--call-found)))
          ;; "struct point p = …" and "struct point;" define no type; "struct Pair(u8, u8);" does.
          ((and (memq kind '(:struct :enum :class :module))
                (string-match-p "\\`[^({]*[;=]" rest))
           nil)
          (t (cons name kind)))))

(defun contexture-defun--call-found ()
  "Return (NAME . KIND) for the match of `contexture-defun--call-head'.
Return nil if it is a call or a statement instead of a definition's head."
  (let ((name (match-string-no-properties 1))
        (line (buffer-substring-no-properties (point) (match-end 1))))
    (unless (or (member name contexture-defun--no-names)
                (string-match-p "\\_<\\(?:return\\|else\\|new\\|throw\\|await\\|case\\)\\_>"
                                line))
      (goto-char (1- (match-end 0)))
      (and (ignore-errors (forward-list) t)
           (looking-at-p "[^;{}()=,\"']*{")
           (cons name :function)))))

(defun contexture-defun--lisp-kind (operator)
  "Return the kind of definition that OPERATOR, a Lisp macro's name, makes."
  (pcase operator
    ((rx (or "macro" "syntax")) :macro)
    ((rx "test") :test)
    ((rx (or "method" "generic" "multi")) :method)
    ((rx (or "class" "struct" "record" "type")) :class)
    ((rx "protocol") :interface)
    ((rx (or "package" "module" "library")) :module)
    ((rx (or "var" "const" "param" "custom" "face" "group" "global")) :variable)
    ((or "def" "defonce") :variable)
    (_ :function)))

;;;; What belongs to a definition, above it

(defconst contexture-defun--annotation
  (rx (* blank) (or (seq "@" (any alpha "_")) "#[" "#![" "[["
                    (seq "template" (* blank) "<")
                    (seq "[" (any upper))))
  "Regexp for the beginning of a decorator, an attribute or a template's head.")

(defconst contexture-defun--comment
  (rx (* blank) (or "//" "/*" "*/" "* " "*\n"
                    (seq "#" (or (any " #'\n") eol)) (seq (+ ";") (or (any " #\n") eol))
                    "--" "%"))
  "Regexp for a line that is a comment in most languages.")

(defun contexture-defun--comment-line-p ()
  "Return non-nil if this line is nothing but a comment.
A line that begins with \"#!\" does not count, nor does a heading such
as \";;; Code\"."
  (save-excursion
    (forward-line 0)
    (skip-chars-forward " \t")
    (cond ((eolp) nil)
          ((looking-at-p "#!") nil)
          ((looking-at-p ";;;;? [^#]") nil) ; a heading
          ((nth 3 (syntax-ppss)) nil)
          ((nth 4 (syntax-ppss)))
          ((derived-mode-p 'prog-mode)
           (or (and comment-start-skip (looking-at-p comment-start-skip))
               (and (looking-at-p "//\\|/\\*")
                    (forward-comment 1))))
          (t (forward-line 0)
             (looking-at-p contexture-defun--comment)))))

(defun contexture-defun--annotation-start ()
  "Return where the annotation that ends on this line begins, or nil."
  (save-excursion
    (end-of-line)
    (skip-chars-backward " \t")
    (when (memq (char-before) '(?\) ?\]))
      (ignore-errors (backward-list)))
    (forward-line 0)
    (and (looking-at-p contexture-defun--annotation) (point))))

(defun contexture-defun--grow (start)
  "Return where the comments and annotations directly above START begin.
If there are none, return the beginning of START's line."
  (save-excursion
    (goto-char start)
    (forward-line 0)
    (let ((start (point)))
      (while (and (zerop (forward-line -1))
                  (let ((above (or (contexture-defun--annotation-start)
                                   (and (contexture-defun--comment-line-p) (point)))))
                    (when (and above (< above start))
                      (setq start above)
                      (goto-char above)))))
      (goto-char start)
      (when (looking-at-p ";;;###") (forward-line)) ; a cookie with no comment above it
      (point))))

(defun contexture-defun--skip-preamble ()
  "Go from a comment or annotation to the definition directly below it.
Stay if there is none."
  (let ((here (point)) found)
    (forward-line 0)
    (while (and (not (eobp))
                (or (contexture-defun--comment-line-p)
                    (looking-at-p contexture-defun--annotation)))
      (setq found t)
      (if (looking-at-p contexture-defun--annotation)
          (let ((eol (line-end-position)))
            (back-to-indentation)
            (ignore-errors
              (skip-chars-forward "^([<\n")
              (unless (eolp) (forward-list)))
            (goto-char (max (point) eol))
            (if (< (point) (line-end-position)) (goto-char eol))
            (forward-line))
        (forward-line)))
    (if (and found (not (looking-at-p "[ \t]*$")))
        (back-to-indentation)
      (goto-char here))))

;;;; By the lines' indentation

(defun contexture-defun--blank-p ()
  "Return non-nil if the indentation of this line says nothing.
Such a line is blank, a label, or a directive of C's preprocessor."
  (save-excursion
    (forward-line 0)
    (looking-at-p
     (rx (* blank)
         (or eol
             (seq (or "public" "private" "protected" "signals") (* (any " a-z")) ":"
                  (* blank) eol)
             (seq "#" (* blank) (or "if" "ifdef" "ifndef" "else" "elif" "endif" "define"
                                    "undef" "pragma" "include")
                  symbol-end))))))

(defun contexture-defun--closer-p ()
  "Return non-nil if this line begins with the end of a block."
  (save-excursion
    (back-to-indentation)
    (looking-at-p "[])}]\\|\\(?:end\\|done\\|fi\\|esac\\)\\_>")))

(defun contexture-defun--opener-p ()
  "Return non-nil if this line continues a head that began above it."
  (save-excursion
    (back-to-indentation)
    (looking-at-p "{\\|where\\_>")))

(defun contexture-defun--end-by-indentation ()
  "Return where the definition whose head begins on this line ends."
  (save-excursion
    (if (save-excursion (back-to-indentation) (eq (char-after) ?\())
        (progn (back-to-indentation)
               (ignore-errors (forward-list))
               (min (point-max) (1+ (line-end-position))))
      (let* ((depth (current-indentation))
             (end (progn (forward-line) (point))))
        (while (and (not (eobp))
                    (or (contexture-defun--blank-p)
                        (> (current-indentation) depth)
                        ;; GNU style: the brace of a function is below its head.
                        (and (= (current-indentation) depth)
                             (or (contexture-defun--closer-p)
                                 (contexture-defun--opener-p))
                             (not (contexture-defun--done-p end depth)))))
          (let ((blank (contexture-defun--blank-p)))
            (forward-line)
            (unless blank (setq end (point)))))
        end))))

(defun contexture-defun--body-p (end)
  "Return non-nil if the lines from here to END may be a definition.
Outside of `prog-mode', what looks like a definition may be prose."
  (or (derived-mode-p 'prog-mode)
      (and (not (derived-mode-p 'text-mode))
           (or (> end (line-beginning-position 2))
               (looking-at-p ".*[]}{;][ \t]*$")))))

(defun contexture-defun--done-p (end depth)
  "Return non-nil if the line before END closes a definition at DEPTH.
A line that also opens a block, such as \") {\", does not."
  (save-excursion
    (goto-char end)
    (forward-line -1)
    (and (= (current-indentation) depth)
         (contexture-defun--closer-p)
         (not (looking-at-p ".*[[({:][ \t]*$")))))

(defun contexture-defun--by-indentation ()
  "Return the smallest definition around point that indentation shows, or nil.
It is a list of its beginning, end, name and kind."
  (save-excursion
    (let ((here (if (contexture-defun--blank-p) (point) (line-beginning-position)))
          (limit most-positive-fixnum)
          found)
      (forward-line 0)
      (while (and (contexture-defun--blank-p) (not (bobp)))
        (forward-line -1))
      (while (and (not found) (>= limit 0))
        (let ((depth (current-indentation)))
          (when (and (not (contexture-defun--blank-p))
                     (or (< depth limit)
                         ;; The lines of a head may end with a closer at its depth.
                         (and (= depth limit) (< limit most-positive-fixnum))))
            (when-let* ((head (contexture-defun--head-here))
                        (end (contexture-defun--end-by-indentation)))
              (when (and (> end here) (contexture-defun--body-p end))
                (setq found (list (point) end (car head) (cdr head)))))
            (unless found
              (setq limit (if (or (contexture-defun--closer-p)
                                  (contexture-defun--opener-p))
                              depth
                            (1- depth))))))
        (when (and (not found) (/= 0 (forward-line -1)))
          (setq limit -1)))
      found)))

;;;; By the mode

(defconst contexture-defun--treesit-p
  (and (fboundp 'treesit-defun-at-point) (fboundp 'treesit-parent-until)
       (fboundp 'treesit-parser-list) (fboundp 'treesit-node-children)
       (fboundp 'treesit-node-parent) (fboundp 'treesit-node-type)
       (fboundp 'treesit-node-start) (fboundp 'treesit-node-end))
  "Non-nil if this Emacs has tree-sitter, as Emacs 29 and later may.")

(defun contexture-defun--by-parser ()
  "Return (BEG END) of the definition that tree-sitter sees, or nil."
  (when (and contexture-defun--treesit-p (treesit-parser-list))
    (let ((node (ignore-errors (treesit-defun-at-point))))
      (while (and node (contexture-defun--plain-value-p node))
        (setq node (treesit-parent-until
                    node (lambda (it)
                           (string-match-p
                            (rx (or "function" "method" "class" "lexical") (* anything)
                                (or "declaration" "definition" "declara"))
                            (treesit-node-type it))))))
      (and node (list (treesit-node-start node) (treesit-node-end node))))))

(defun contexture-defun--plain-value-p (node)
  "Return non-nil if NODE declares a value, no function, below the top level."
  (and (member (treesit-node-type node) '("lexical_declaration" "variable_declaration"))
       (not (member (treesit-node-type (treesit-node-parent node))
                    '("program" "export_statement")))
       (not (cl-some
             (lambda (child)
               (cl-some (lambda (it)
                          (string-match-p "function" (treesit-node-type it)))
                        (treesit-node-children child t)))
             (treesit-node-children node t)))))

(defun contexture-defun--lisp-p ()
  "Return non-nil if this buffer's mode is for a kind of Lisp."
  (derived-mode-p 'emacs-lisp-mode 'lisp-data-mode 'lisp-mode 'scheme-mode 'clojure-mode))

(defun contexture-defun--by-mode ()
  "Return (BEG END) of the definition that the mode's own rules find, or nil."
  (when (or (contexture-defun--lisp-p)
            (and (local-variable-p 'beginning-of-defun-function)
                 (not (derived-mode-p 'js-mode))))
    (when-let* ((bounds (or (bounds-of-thing-at-point 'defun)
                            (contexture-defun--by-motion))))
      (save-excursion
        (goto-char (car bounds))
        (skip-chars-forward " \t\n" (cdr bounds))
        (unless (or (= (point) (cdr bounds))
                    (and (derived-mode-p 'rust-mode)
                         (contexture-defun--statement-p (cdr bounds))))
          (list (point) (cdr bounds)))))))

(defun contexture-defun--statement-p (end)
  "Return non-nil if a statement ends between point and END, before any block.
Rust's mode takes the end of the next block for that of \"mod a;\"."
  (save-excursion
    (let (found)
      (while (and (null found) (re-search-forward "[[({;]" end t))
        (unless (nth 8 (save-excursion (syntax-ppss (match-beginning 0))))
          (if (memq (char-before) '(?\( ?\[))
              (ignore-errors (backward-char) (forward-sexp))
            (setq found (char-before)))))
      (and (eq found ?\;) (< (point) (1- end))))))

(defun contexture-defun--by-motion ()
  "Return the bounds of the definition around point, found by motion, or nil.
`bounds-of-thing-at-point' does not find a Python class with methods,
since it goes back from the end of the class to a method."
  (let ((here (point)))
    (save-excursion
      (end-of-line)
      (when (and (ignore-errors (beginning-of-defun))
                 (not (looking-at-p "[ \t]*$")))
        (let ((start (point)))
          (ignore-errors (end-of-defun))
          (when (and (<= start (save-excursion (goto-char here) (line-end-position)))
                     (< here (point)))
            (cons start (point))))))))

;;;; The definition

(defconst contexture-defun--containers
  '(:class :struct :interface :trait :impl :enum :module)
  "Kinds of definitions whose names precede those of definitions inside.")

;;;###autoload
(defun contexture-defun-at-point ()
  "Return the definition around point as a plist, or nil if there is none.
Its keys are :beg and :end, its bounds; :name, a string or nil; and
:kind, such as `:function', `:method', `:class', `:section' or `:block'."
  (save-excursion
    (save-match-data
      (pcase (cond ((derived-mode-p 'org-mode) (contexture-defun-prose--org))
                   ((or (derived-mode-p 'markdown-mode 'markdown-ts-mode
                                        'gfm-mode)
                        (and (not (derived-mode-p 'prog-mode))
                             (string-match-p contexture-defun-prose--files
                                             (or buffer-file-name ""))))
                    (let* ((blocks (contexture-defun-prose--blocks))
                           (block (contexture-defun-prose--block blocks)))
                      (if (eq (nth 3 block) :block) block
                        (contexture-defun-prose--section blocks))))
                   ((derived-mode-p 'rst-mode) (contexture-defun-prose--rst))
                   (t (or (contexture-defun--in-code) (contexture-defun-prose--cell))))
        (`(,beg ,end ,name ,kind)
         (list :beg beg :end end :name name :kind kind))))))

(defconst contexture-defun--named-seconds 0.5
  "Maximum number of seconds in which to look for all definitions of a name.")

(defun contexture-defun--named (name)
  "Return the bounds of the definitions of NAME in this buffer, as pairs.
NAME may be a full name, such as \"Class.method\".  Signal an error if there
is too much to look at."
  (save-excursion
    (goto-char (point-min))
    (let ((case-fold-search nil)
          (last (car (last (split-string name "\\."))))
          (end (+ (float-time) contexture-defun--named-seconds))
          found)
      (while (search-forward last nil t)
        (when (> (float-time) end)
          (error "This buffer has too much that may be %s" (contexture--visible name)))
        (when-let* ((head (car (contexture-defun--head-here)))
                    ((member head (list name last)))
                    (definition (contexture-defun-at-point))
                    ((member name (list head (plist-get definition :name)))))
          (push (cons (plist-get definition :beg) (plist-get definition :end)) found))
        (forward-line))
      (nreverse (delete-dups found)))))

(defun contexture-defun--defines-p (line name)
  "Return non-nil if a definition of NAME begins on LINE, a text.
Its body may begin with a brace on the next line."
  (with-temp-buffer
    (insert line "\n{\n")
    (goto-char (point-min))
    (equal (car (contexture-defun--head-here)) name)))

(defun contexture-defun--in-code ()
  "Return the definition around point as (BEG END NAME KIND), or nil."
  (contexture-defun--skip-preamble)
  (let* ((shown (unless (contexture-defun--lisp-p)
                  (contexture-defun--by-indentation)))
         (known (or (contexture-defun--by-parser) (contexture-defun--by-mode)))
         ;; Modes overlook functions that are values, and methods in some languages.
         (bounds (if (or (null known)
                         (and shown (> (nth 0 shown) (nth 0 known))
                              (<= (nth 1 shown) (1+ (nth 1 known)))))
                     shown
                   known)))
    (when bounds
      (contexture-defun--describe (nth 0 bounds) (nth 1 bounds) shown))))

(defun contexture-defun--describe (beg end shown)
  "Return the definition from BEG to END as (BEG END NAME KIND).
The BEG returned is that of the comments and annotations directly above it.
SHOWN is the value of `contexture-defun--by-indentation' there."
  (let* ((head (save-excursion
                 (goto-char beg)
                 (forward-line 0)
                 (let ((start (point)))
                   (contexture-defun--skip-preamble)
                   (if (< (point) end) (line-beginning-position) start))))
         (here (or (save-excursion (goto-char head) (contexture-defun--head-here))
                   (and shown (= (nth 0 shown) (line-beginning-position))
                        (nthcdr 2 shown))))
         (outer (contexture-defun--outer head))
         (kind (or (cdr here) :definition)))
    (list (contexture-defun--grow beg)
          (save-excursion
            (goto-char end)
            (if (bolp) end (min (point-max) (1+ (line-end-position)))))
          (if (car here)
              (contexture-defun--full-name (car here) outer)
            (save-excursion
              (goto-char head)
              (back-to-indentation)
              (require 'add-log)
              (when-let* ((name (ignore-errors (add-log-current-defun))))
                (substring-no-properties name))))
          (if (and (eq kind :function) (not (eq (nth 3 outer) :module))
                   (memq (nth 3 outer) contexture-defun--containers))
              :method
            kind))))

(defun contexture-defun--outer (head)
  "Return the definition that indentation shows around the line at HEAD, or nil."
  (save-excursion
    (goto-char head)
    (let ((depth (current-indentation)))
      (when (> depth 0)
        (while (and (zerop (forward-line -1))
                    (or (contexture-defun--blank-p)
                        (>= (current-indentation) depth))))
        (contexture-defun--by-indentation)))))

(defun contexture-defun--full-name (name outer)
  "Return NAME with the outer names before it, as in \"Class.method\".
OUTER is the definition around it, or nil."
  (if (memq (nth 3 outer) contexture-defun--containers)
      (concat (save-excursion
                (goto-char (nth 0 outer))
                (contexture-defun--full-name
                 (nth 2 outer) (contexture-defun--outer (point))))
              "." name)
    name))

;;; Review a proposed change at its place

;; Shows how a buffer would change, in the buffer itself: lines that would
;; go are coloured, and lines that would come stand below them, also while
;; the new text still comes in.  The buffer changes only when you accept,
;; all of the change or a part of it, and one undo reverts that.

(cl-defstruct (contexture-review (:constructor contexture-review--make)
                                 (:conc-name contexture-review--) (:copier nil))
  "A change that is proposed for the lines below PLACE, an overlay.
BEFORE and AFTER are the texts of these lines around the part that would
be replaced; TEXT is the new text of that part, as far as it has come.
KEYS is the overlay with the keymap, which also holds directly below PLACE.
PARTS are overlays of the parts that are neither accepted nor rejected; each
has its new text, the lines of that, and when a window has shown them and the
lines that would go.  APPEARED is the time when a window has shown the place.
STATE is `coming', `ready' or `ended'; HEADING is the text above PLACE.
SHOWN is the time when the change was last drawn, and ACCEPTED the number
of parts that were accepted.  AGAIN is a function that asks once more, with
a remark; CANCEL is one that stops the text that is coming; DECIDED is one
to call once the user has decided about all parts."
  place keys before after (text "") parts (state 'coming) (heading "") (shown 0) (accepted 0)
  again cancel decided appeared)

(defface contexture-review-more '((t :inherit shadow))
  "Face of the lines that say how many new lines are not shown."
  :group 'contexture)

(defconst contexture-review--draw-seconds 0.2
  "Minimum number of seconds between redraws of a change that is still coming.")

(defvar contexture-review--all nil
  "Changes that are proposed, in all buffers, the newest last.")

(defvar contexture-rewrite-history nil
  "History of instructions on how to change code.")

(defvar contexture-review-accepted-functions nil
  "Functions to call in a buffer in which the user has accepted a change.
Each is called with a marker at the beginning of the changed lines.")

(defvar contexture-review-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'contexture-review-accept)
    (define-key map (kbd "C-c C-k") #'contexture-review-reject)
    (define-key map (kbd "C-c C-a") #'contexture-review-accept-part)
    (define-key map (kbd "C-c C-d") #'contexture-review-reject-part)
    (define-key map (kbd "C-c C-n") #'contexture-review-next)
    (define-key map (kbd "C-c C-p") #'contexture-review-previous)
    (define-key map (kbd "C-c C-e") #'contexture-review-ediff)
    (define-key map (kbd "C-c C-r") #'contexture-review-again)
    map)
  "Keymap of the lines for which a change is proposed.")

(defvar contexture-review--elsewhere-map
  (let ((map (make-sparse-keymap)))
    (define-key map [remap scroll-up-command] #'contexture-review-scroll-up)
    (define-key map [remap scroll-down-command] #'contexture-review-scroll-down)
    (map-keymap
     (lambda (event command)
       (let ((key (vector ?\C-c event)))
         (define-key map key
           `(menu-item "" ,command
                       :filter ,(apply-partially #'contexture-review--unless-used key)))))
     (lookup-key contexture-review-map (kbd "C-c")))
    map)
  "Keymap of a buffer in which a change is proposed, outside of its lines.
It has those keys of `contexture-review-map' that the buffer does not use.")

(defvar-local contexture-review--in-buffer nil
  "Non-nil if a change is proposed in this buffer.")

(put 'contexture-review--in-buffer 'permanent-local t)

(add-to-list 'minor-mode-map-alist
             (cons 'contexture-review--in-buffer contexture-review--elsewhere-map))

(defun contexture-review--unless-used (key command)
  "Return COMMAND, or nil if this buffer uses KEY for something else."
  (let ((contexture-review--in-buffer nil))
    (unless (key-binding key) command)))

;;;; Beginning and ending

(defun contexture-review--check ()
  "Signal an error if this buffer is read-only or an indirect buffer."
  (barf-if-buffer-read-only)
  (when (buffer-base-buffer)
    (contexture--user-error "%1$s shows a part of %2$s; ask for the change in %2$s"
                            (buffer-name) (buffer-name (buffer-base-buffer)))))

(cl-defun contexture-review--begin (beg end &key again cancel decided)
  "Begin to propose a change of the text from BEG to END; return the review.
AGAIN is a function that asks once more, with a remark; CANCEL one that
stops the new text; DECIDED one to call once the user has decided.
`contexture-review--show' then shows the change in this buffer."
  (contexture-review--check)
  (require 'diff-mode)                  ; for its faces
  (contexture--widened
    (let ((from (progn (goto-char beg) (line-beginning-position)))
          (to (progn (goto-char end)
                     (if (and (bolp) (> end beg)) end
                       (min (point-max) (1+ (line-end-position)))))))
      (when (cl-some (lambda (it) (overlay-get it 'contexture-review))
                     (overlays-in from (max to (1+ from))))
        (user-error "A change to these lines has already been proposed; accept or reject it first"))
      (let* ((place (make-overlay from to nil t nil))
             ;; After a region was marked, point is where it ends.
             (keys (make-overlay from to nil nil t))
             (review (contexture-review--make
                      :place place :keys keys :again again :cancel cancel :decided decided
                      :before (buffer-substring-no-properties from beg)
                      :after (buffer-substring-no-properties end to))))
        (overlay-put place 'contexture-review review)
        (overlay-put keys 'keymap contexture-review-map)
        (overlay-put place 'priority 100)
        ;; Instead of a mark of these lines: after one, Emacs shows the ends
        ;; of lines in our strings as ^J.
        (unless (get-text-property from 'line-prefix)
          (overlay-put place 'line-prefix ""))
        (setq contexture-review--all (append contexture-review--all (list review))
              contexture-review--in-buffer t)
        (contexture--watch-shown #'contexture-review--note-seen)
        (contexture-review--title review "Waiting for the change")
        (contexture-review--retitle)
        review))))

(defun contexture-review--open ()
  "Return the changes that are proposed in live buffers."
  (setq contexture-review--all
        (cl-remove-if-not #'contexture-review--buffer contexture-review--all)))

(defun contexture-review--open-here ()
  "Return the changes that are proposed in this buffer."
  (cl-remove-if-not (lambda (review) (eq (contexture-review--buffer review) (current-buffer)))
                    (contexture-review--open)))

(defun contexture-review--buffer (review)
  "Return the buffer of REVIEW, or nil if it was killed."
  (overlay-buffer (contexture-review--place review)))

(defun contexture-review--end (review)
  "End REVIEW, and stop showing it."
  (setf (contexture-review--state review) 'ended)
  (setq contexture-review--all (delq review contexture-review--all))
  (contexture--with-live-buffer (contexture-review--buffer review)
    (unless (setq contexture-review--in-buffer (and (contexture-review--open-here) t))
      (contexture--unwatch-shown #'contexture-review--note-seen)))
  (mapc #'delete-overlay (contexture-review--parts review))
  (delete-overlay (contexture-review--keys review))
  (delete-overlay (contexture-review--place review))
  (contexture-review--retitle))

(defun contexture-review--tell (review)
  "Call the function that waits for the user's decision on REVIEW, once."
  (when-let* ((decided (contexture-review--decided review)))
    (setf (contexture-review--decided review) nil)
    (funcall decided)))

(defun contexture-review--drop-in (beg end)
  "End all proposed changes of the text from BEG to END in this buffer."
  (dolist (overlay (overlays-in beg (max end (1+ beg))))
    (when-let* ((review (overlay-get overlay 'contexture-review)))
      (contexture-review--end review))))

(defun contexture-review--ended-p (review)
  "Return non-nil if REVIEW has ended or its buffer was killed."
  (or (eq (contexture-review--state review) 'ended)
      (not (contexture-review--buffer review))))

;;;; Showing

(defun contexture-review--show (review text &optional complete)
  "Show TEXT as what REVIEW proposes; COMPLETE means that no more comes.
Until then, draw it at most every `contexture-review--draw-seconds'.  Return
non-nil if it was drawn and would change anything."
  (unless (contexture-review--ended-p review)
    (setf (contexture-review--text review) text)
    (when (or complete
              (> (float-time) (+ (contexture-review--shown review)
                                 contexture-review--draw-seconds)))
      (setf (contexture-review--shown review) (float-time))
      (with-current-buffer (contexture-review--buffer review)
        (contexture--widened
          (contexture-review--draw review complete))))))

(defun contexture-review--draw (review complete)
  "Draw and return the parts of REVIEW; COMPLETE means that no more comes."
  (let* ((place (contexture-review--place review))
         (old (buffer-substring-no-properties (overlay-start place) (overlay-end place)))
         (parts (contexture-review--differences review old complete)))
    (mapc #'delete-overlay (contexture-review--parts review))
    (setf (contexture-review--parts review)
          (mapcar (lambda (part) (contexture-review--draw-part review part)) parts))
    (when complete
      (setf (contexture-review--state review) 'ready
            (contexture-review--appeared review) nil))
    (contexture-review--title
     review (concat (contexture--count (length parts) "change")
                    (cond ((not complete) " so far")
                          ((cdr parts) "") ; the keys need the room
                          (t " proposed"))))
    (when (and complete (null parts))
      (contexture-review--end review)
      (contexture--message "%s already has the proposed text" (buffer-name)))
    parts))

(defun contexture-review--differences (review old complete)
  "Return how REVIEW would change OLD, the text of its lines.
The value is as for `contexture-review--compare'.  Unless COMPLETE, new text
is still coming; then no more lines at the end of OLD go than have come."
  (let* ((text (contexture-review--text review))
         (new (concat (contexture-review--before review)
                      (if complete text
                        (substring text 0 (or (cl-position ?\n text :from-end t) 0)))
                      (and complete (contexture-review--after review))))
         (parts (contexture-review--compare old new))
         (lines (cl-count ?\n (contexture-review--ended old))))
    (if complete parts
      ;; At the end of the old text, only as many lines go as have come.
      (cl-loop for (line count . new) in parts
               if (< (+ line count) lines) collect (cons line (cons count new))
               else unless (string-empty-p new)
               collect (cons line (cons (min count (cl-count ?\n new)) new))))))

(defun contexture-review--ended (text)
  "Return TEXT with a newline at its end, unless it is empty."
  (if (or (string-empty-p text) (string-suffix-p "\n" text)) text (concat text "\n")))

(defconst contexture-review--most-compared 20000
  "Number of lines beyond which two texts are not compared line by line.
Diff would take seconds for texts that have little in common.")

(defconst contexture-review--most-parts 200
  "Maximum number of parts of a change; all differences after them are one part.
Emacs takes long to show more.")

(defun contexture-review--compare (old new)
  "Return the differences between OLD and NEW, each as (LINE COUNT . TEXT).
COUNT lines after the first LINE lines of OLD are replaced by TEXT.  If both
are very long, or differ in very many places, differences are joined."
  (let ((coding-system-for-write 'utf-8-emacs-unix)
        (coding-system-for-read 'utf-8-emacs-unix)
        (count (cl-count ?\n (contexture-review--ended old)))
        file)
    (if (< contexture-review--most-compared (min count (cl-count ?\n new)))
        (unless (equal old new)
          (list (cons 0 (cons count (contexture-review--ended new)))))
      (setq file (make-temp-file "contexture-old"))
      (unwind-protect
          (with-temp-buffer
            (write-region (contexture-review--ended old) nil file nil 'silent)
            (insert (contexture-review--ended new))
            (let ((status (call-process-region nil nil diff-command t t nil
                                               "-a" file "-")))
              (unless (memql status '(0 1))
                (contexture--user-error "%s failed: %s" diff-command
                                        (contexture--trim (buffer-string)))))
            (contexture-review--read-differences new))
        (delete-file file)))))

(defun contexture-review--read-differences (new)
  "Return the differences in this buffer, which is the output of diff.
NEW is the new text.  The value is as for `contexture-review--compare'."
  (goto-char (point-min))
  (let ((lines (vconcat (split-string new "\n")))
        found)
    (while (re-search-forward
            "^\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)?\\([acd]\\)\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)?$"
            nil t)
      (let* ((number (lambda (group) (and (match-string group)
                                          (string-to-number (match-string group)))))
             (from (funcall number 1)) (to (or (funcall number 2) from))
             (first (funcall number 4)) (last (or (funcall number 5) first))
             (kind (match-string 3)))
        ;; Lines from FROM to TO become those from FIRST to LAST, both counted from 0.
        (push (list (if (equal kind "a") from (1- from)) to
                    (if (equal kind "d") first (1- first)) last)
              found)))
    (mapcar (pcase-lambda (`(,from ,to ,first ,last))
              (cons from (cons (- to from)
                               (mapconcat (lambda (line) (concat line "\n"))
                                          (cl-subseq lines first last) ""))))
            (contexture-review--joined (nreverse found)))))

(defun contexture-review--joined (differences)
  "Return DIFFERENCES, each (FROM TO FIRST LAST), with all after the most joined."
  (let ((rest (nthcdr (1- contexture-review--most-parts) differences)))
    (if (null (cdr rest)) differences
      (pcase-let ((`(,from ,_ ,first ,_) (car rest))
                  (`(,_ ,to ,_ ,last) (car (last rest))))
        (append (seq-take differences (1- contexture-review--most-parts))
                (list (list from to first last)))))))

(defun contexture-review--draw-part (review part)
  "Draw PART of REVIEW, a difference, and return its overlay."
  (pcase-let* ((`(,line ,count . ,text) part)
               (end (overlay-end (contexture-review--place review)))
               (from (progn (goto-char (overlay-start (contexture-review--place review)))
                            (forward-line line)
                            (point)))
               (to (progn (when (> count 0) (forward-line count))
                          (min (point) end)))
               (overlay (make-overlay from to nil t nil)))
    ;; The last line of a buffer may have no newline.
    (let ((bare (and (= to (point-max)) (> to (point-min))
                     (not (eq (char-before to) ?\n)))))
      (when (and bare (string-empty-p text)
                 (> from (overlay-start (contexture-review--place review))))
        (move-overlay overlay (cl-decf from) to))
      (overlay-put overlay 'contexture-new
                   (if (not bare) text
                     (concat (and (= from to) (not (string-empty-p text)) "\n")
                             (string-remove-suffix "\n" text))))
      (overlay-put overlay 'contexture-bare bare))
    (overlay-put overlay 'contexture-lines (contexture-review--rows text))
    (overlay-put overlay 'contexture-gone (count-lines from to))
    (overlay-put overlay 'contexture-seen
                 (make-vector (+ (overlay-get overlay 'contexture-gone)
                                 (length (overlay-get overlay 'contexture-lines)))
                              nil))
    (contexture-review--show-lines overlay 0)
    (overlay-put overlay 'contexture-old (buffer-substring-no-properties from to))
    (overlay-put overlay 'face 'diff-removed)
    (overlay-put overlay 'priority 101)
    overlay))

;;;; More lines than the window has

;; New text is no text of the buffer, so a window cannot begin within it.
;; Of a part with more lines than the window, some are shown at a time, and
;; the commands that scroll go on to the next.  What a window has shown is
;; recorded, so that nothing is accepted unseen by mistake.

(defconst contexture-review--longest-row 400
  "Maximum number of columns of new text in one piece; longer lines are divided.")

(defconst contexture-review--other-rows 5
  "Number of lines of a window that are kept free of new text.
They are for the title, an old line, and the note that there are more
lines.")

(defun contexture-review--rows (text)
  "Return the lines of TEXT as they are shown, in a list.
A line is divided where a window with this buffer would cut it."
  (let* ((window (get-buffer-window nil t))
         (columns (and window (contexture--columns window)))
         rows)
    (dolist (line (split-string (contexture--visible (string-remove-suffix "\n" text) t) "\n"))
      ;; Copying the rest of the line for each row would take long.
      (let ((at 0) (end (length line)))
        (while (let* ((piece (substring line at (min end (+ at contexture-review--longest-row))))
                      (row (if columns (truncate-string-to-width piece (max 2 columns)) piece)))
                 (when (< 0 (length row) (- end at))
                   (push row rows)
                   (cl-incf at (length row)))))
        (push (substring line at) rows)))
    (if (string-empty-p text) nil (nreverse rows))))

(defun contexture-review--height (row)
  "Return the number of lines that a window with this buffer needs for ROW."
  (let ((width (max 1 (if-let* ((window (get-buffer-window nil t)))
                          (window-max-chars-per-line window)
                        (frame-width)))))
    (max 1 (ceiling (string-width row) width))))

(defun contexture-review--room ()
  "Return the number of lines for new text in a window with this buffer."
  (let ((window (get-buffer-window nil t)))
    (max 3 (- (if window (window-body-height window) (frame-height))
              contexture-review--other-rows))))

(defun contexture-review--show-lines (part first)
  "Show those lines of PART that have room, from that with the index FIRST."
  (let* ((lines (overlay-get part 'contexture-lines))
         (count (length lines))
         (first (max 0 (min first (1- count))))
         (room (contexture-review--room))
         (last first)
         (more (lambda (number where key)
                 (if (<= number 0) ""
                   (propertize (format "-- %s %s; %s shows %s\n" (contexture--count number "new line")
                                       where key (if (= number 1) "it" "them"))
                               'face 'contexture-review-more)))))
    (while (and (< last count)
                (or (= last first) (>= room (contexture-review--height (nth last lines)))))
      (setq room (- room (contexture-review--height (nth last lines)))
            last (1+ last)))
    (overlay-put part 'contexture-shown (cons first last))
    (let* ((above (funcall more first "above" "M-v"))
           (text (concat
                  above
                  (mapconcat (lambda (line) (propertize (concat line "\n") 'face 'diff-added))
                             (cl-subseq lines first last) "")
                  (funcall more (- count last) "below" "C-v"))))
      (overlay-put part 'contexture-above
                   (+ (length above) (if (overlay-get part 'contexture-bare) 1 0)))
      (overlay-put part 'after-string
                   (if (overlay-get part 'contexture-bare)
                       (concat "\n" (substring text 0 (max 0 (1- (length text)))))
                     text)))))

(defun contexture-review--parts-here ()
  "Return the parts of all changes that are proposed in this buffer."
  (cl-mapcan (lambda (review) (copy-sequence (contexture-review--parts review)))
             (contexture-review--open-here)))

(defun contexture-review--rows-above (part)
  "Return the number of lines between the top of the window and PART's new text.
Return nil if that begins above the window or below it."
  (let ((end (overlay-end part)))
    (when (and (<= (window-start) end (window-end nil noninteractive))
               (<= end (contexture--shown-to (selected-window))))
      (if noninteractive                ; where nothing is drawn
          (count-screen-lines (window-start) end)
        (when-let* ((place (posn-at-point (max (point-min) (1- end)))))
          (1+ (cdr (posn-actual-col-row place))))))))

(defun contexture-review--note-seen (window)
  "Note when WINDOW, which has been drawn, shows the changes of this buffer."
  (let* ((bottom (contexture--shown-to window))
         (shown (lambda (overlay)
                  (and (<= (window-start window) (overlay-end overlay))
                       (<= (overlay-start overlay) bottom)))))
    (dolist (review (contexture-review--open-here))
      (when (and (null (contexture-review--appeared review))
                 (funcall shown (contexture-review--place review)))
        (setf (contexture-review--appeared review) (float-time)))
      (dolist (part (contexture-review--parts review))
        (when (funcall shown part)
          (contexture-review--note-gone part window bottom)
          (contexture-review--note-new part window))))))

(put 'contexture-review--note-seen 'permanent-local-hook t)

(defun contexture-review--note (part index)
  "Note that a window shows the line of PART with INDEX, if that is the first time.
The lines that would go come before the new ones."
  (let ((seen (overlay-get part 'contexture-seen)))
    (unless (aref seen index)
      (aset seen index (float-time)))))

(defun contexture-review--note-gone (part window bottom)
  "Note which of those lines WINDOW shows, up to BOTTOM, that would go with PART."
  (let ((from (overlay-start part)) (to (overlay-end part)))
    (when (and (< from to) (< (window-start window) to))
      (save-excursion
        (goto-char (max from (window-start window)))
        (unless (bolp) (forward-line))
        (cl-loop with bottom = (min to bottom)
                 for index from (count-lines from (point))
                 for next = (min to (line-beginning-position 2))
                 while (and (< (point) bottom) (<= next bottom))
                 do (when (contexture--uncut-p window (point) next)
                      (contexture-review--note part index))
                 (goto-char next))))))

(defun contexture-review--note-new (part window)
  "Note which new lines of PART WINDOW shows."
  (pcase-let* ((end (overlay-end part))
               (before (max (point-min) (1- end)))
               (`(,first . ,last) (overlay-get part 'contexture-shown))
               (lines (overlay-get part 'contexture-lines)))
    (when (and (< first last)
               (<= (window-start window) before)
               ;; A string beside folded text may be hidden with it.
               (not (contexture--hidden-p before (min (point-max) (1+ end)))))
      (cl-loop for index from first
               for line in (nthcdr first lines)
               repeat (min (- last first) (contexture-review--rows-shown part window))
               do (when (contexture--fits-p window line)
                    (contexture-review--note part (+ index (overlay-get part 'contexture-gone))))))))

(defun contexture-review--rows-shown (part window)
  "Return how many of the new lines that PART shows WINDOW shows, from the first."
  (pcase-let* ((end (overlay-end part))
               (`(,first . ,last) (overlay-get part 'contexture-shown))
               (lines (cl-subseq (overlay-get part 'contexture-lines) first last))
               (place (unless noninteractive (contexture--bottom window)))
               (string (posn-string place)))
    (cond (noninteractive               ; where nothing is drawn
           (let ((room (- (window-body-height window)
                          (count-screen-lines (window-start window) end)
                          (if (> first 0) 1 0))))
             (cl-loop for line in lines
                      do (cl-decf room (contexture-review--height line))
                      while (>= room 0) count t)))
          ;; The last line of the window is in the middle of the new text.
          ((eq (car string) (overlay-get part 'after-string))
           (cl-loop with at = (overlay-get part 'contexture-above)
                    for line in lines
                    do (cl-incf at (1+ (length line)))
                    while (<= at (cdr string)) count t))
          ((or (null (posn-point place)) (< (posn-point place) end)
               (and string (= (posn-point place) end)))
           0)
          (t (length lines)))))

(defun contexture-review--unseen (part)
  "Return the index of the first line of PART that no window has shown, or nil."
  (cl-position nil (overlay-get part 'contexture-seen)))

(defun contexture-review--check-appeared (review &rest times)
  "Signal an error unless REVIEW has been in view for a while, and since TIMES."
  (apply #'contexture--check-read
         (or (contexture-review--appeared review)
             (setf (contexture-review--appeared review) (float-time)))
         times))

(defun contexture-review--check-seen (review parts)
  "Ask whether to accept PARTS if a window has not shown all their lines.
If the user wants to see them first, show them, and end the command.  End it
also if PARTS are no longer those of REVIEW: another change may come while
the user is asked."
  (contexture--note-shown)
  (apply #'contexture-review--check-appeared review
         (cl-mapcan (lambda (part) (append (overlay-get part 'contexture-seen) nil)) parts))
  (when-let* ((part (cl-find-if #'contexture-review--unseen parts)))
    (let ((count (apply #'+ (mapcar (lambda (it) (cl-count nil (overlay-get it 'contexture-seen)))
                                    parts))))
      (unless (contexture--y-or-n-p
               (format "%s of the change %s not been shown; accept anyway? "
                       (contexture--count count "line") (if (= count 1) "has" "have")))
        (contexture-review--show-unseen part)
        (user-error "Nothing was accepted; C-v shows what follows, C-c C-e what is cut or hidden")))
    (unless (and (memq review (contexture-review--open-here))
                 (cl-every (lambda (it) (memq it (contexture-review--parts review))) parts))
      (user-error "Another change is proposed by now; read it, then decide"))))

(defun contexture-review--show-unseen (part)
  "Show the lines of PART from the first one on that no window has shown."
  (let ((line (- (contexture-review--unseen part) (overlay-get part 'contexture-gone))))
    (if (>= line 0) (contexture-review--show-at part line)
      (goto-char (overlay-start part))
      (forward-line (contexture-review--unseen part))
      (set-window-start nil (point)))))

(defun contexture-review--show-at (part index)
  "Show the lines of PART from that with INDEX on, below the last old line."
  (contexture-review--show-lines part index)
  (goto-char (max (overlay-start part) (1- (overlay-end part))))
  (forward-line 0)
  (set-window-start nil (point)))

(defun contexture-review--scroll (up command)
  "Show the next new lines in view if UP, else the ones before, or call COMMAND."
  (contexture--note-shown)
  (let* ((part (cl-find-if #'contexture-review--rows-above (contexture-review--parts-here)))
         (lines (and part (overlay-get part 'contexture-lines)))
         (shown (and part (overlay-get part 'contexture-shown)))
         (unseen (and part up
                      (cl-position nil (cl-subseq (overlay-get part 'contexture-seen)
                                                  (overlay-get part 'contexture-gone))
                                   :start (car shown) :end (cdr shown)))))
    (cond ((and unseen (not (and (= unseen (car shown)) ; a line too long to be all in view
                                 (<= (contexture-review--rows-above part) 1))))
           (contexture-review--show-at part unseen))
          ((and part up (< (cdr shown) (length lines)))
           (contexture-review--show-at part (cdr shown)))
          ((and part (not up) (> (car shown) 0))
           (contexture-review--show-at
            part (max 0 (- (car shown) (contexture-review--room)))))
          (t (call-interactively command)))))

(defun contexture-review-scroll-up ()
  "Scroll on, also through new text that has more lines than the window."
  (interactive)
  (contexture-review--scroll t #'scroll-up-command))

(defun contexture-review-scroll-down ()
  "Scroll back, also through new text that has more lines than the window."
  (interactive)
  (contexture-review--scroll nil #'scroll-down-command))

(defun contexture-review--say-where (review)
  "Say where REVIEW proposes a change, unless its beginning is in view."
  (let* ((buffer (contexture-review--buffer review))
         (place (overlay-start (contexture-review--place review))))
    (unless (cl-some (lambda (window) (pos-visible-in-window-p place window))
                     (get-buffer-window-list buffer nil 'visible))
      (contexture--message "A change to %s has been proposed; %s goes there"
                           (buffer-name buffer)
                           (contexture--key 'contexture-review-next)))))

(defun contexture-review--go-to (position)
  "Select a window with the change that is proposed at POSITION, a marker.
If it is not all in view, the window becomes as high as the change, but
at most two thirds of the frame, and begins above it."
  (pop-to-buffer (marker-buffer position))
  (goto-char position)
  (when-let* ((review (contexture-review--at (point))))
    (let ((height (min (contexture-review--lines review) (/ (* 2 (frame-height)) 3)))
          (place (contexture-review--place review)))
      (unless (and (pos-visible-in-window-p (overlay-start place))
                   (pos-visible-in-window-p (overlay-end place)))
        (let ((missing (window-sizable nil (- height (window-body-height)))))
          (when (> missing 0)
            (window-resize nil missing)))
        (set-window-start nil (save-excursion
                                (goto-char (overlay-start place))
                                (line-beginning-position
                                 (if (> (window-body-height) height) 0 1))))))))

(defun contexture-review--at (position)
  "Return the change that is proposed at POSITION of this buffer, or nil."
  (cl-some (lambda (it) (overlay-get it 'contexture-review))
           (overlays-in position (1+ position))))

(defun contexture-review--lines (review)
  "Return the height of REVIEW in lines, with its title and one line below it."
  (let ((place (contexture-review--place review)))
    (apply #'+ 2 (count-lines (overlay-start place) (overlay-end place))
           (mapcar (lambda (part)
                     (length (split-string (overlay-get part 'after-string) "\n" t)))
                   (contexture-review--parts review)))))

(defun contexture-review--title (review text)
  "Show TEXT and the keys in a line above REVIEW."
  (setf (contexture-review--heading review) text)
  (let ((keys (cond ((not (eq (contexture-review--state review) 'ready))
                     "C-c C-k stops it")
                    ((cdr (contexture-review--parts review))
                     "C-c C-c accept, C-c C-k reject, C-c C-a/C-d one, C-c C-n next")
                    ((cdr (contexture-review--open))
                     "C-c C-c accept, C-c C-k reject, C-c C-r again, C-c C-n next")
                    (t "C-c C-c accept, C-c C-k reject, C-c C-r ask again"))))
    (overlay-put (contexture-review--place review) 'before-string
                 (propertize (format "%s  %s\n" text keys) 'face 'shadow))))

(defun contexture-review--retitle ()
  "Show all titles again, whose keys depend on the number of proposed changes."
  (dolist (review (contexture-review--open))
    (contexture-review--title review (contexture-review--heading review))))

;;;; Commands

(defun contexture-review--here ()
  "Return the proposed change at point, or the only one of this buffer.
The only one must be in view if the selected window shows this buffer.
Signal an error if there is neither, or if it has only just come."
  (let* ((all (or (contexture-review--open-here)
                  (user-error "No change is proposed here")))
         (only (and (null (cdr all)) (car all)))
         (review (or (cl-find-if (lambda (review)
                                   (let ((place (contexture-review--place review)))
                                     (<= (overlay-start place) (point) (overlay-end place))))
                                 all)
                     (and only (contexture-review--in-view-p only) only))))
    (unless review
      (contexture--user-error
       "%s; %s goes there"
       (if only (concat "The change is proposed in " (contexture-review--where only))
         (format "%d changes are proposed, in %s" (length all)
                 (mapconcat #'contexture-review--where all " and ")))
       (contexture--key 'contexture-review-next)))
    (contexture-review--check-appeared review)
    review))

(defun contexture-review--in-view-p (review)
  "Return non-nil if REVIEW is in view.
It also counts as in view if the selected window shows another buffer."
  (or (not (eq (window-buffer) (contexture-review--buffer review)))
      (let ((place (contexture-review--place review)))
        (and (<= (window-start) (overlay-end place))
             (>= (window-end nil t) (overlay-start place))))))

(defun contexture-review--where (review)
  "Return a phrase for the lines of REVIEW."
  (let* ((place (contexture-review--place review))
         (first (line-number-at-pos (overlay-start place) t))
         (last (line-number-at-pos (max (overlay-start place) (1- (overlay-end place))) t)))
    (if (= first last) (format "line %d" first) (format "lines %d-%d" first last))))

(defun contexture-review--part (review)
  "Return the part of REVIEW at point, or the next one, or else the first.
Signal an error while the new text is still coming."
  (unless (eq (contexture-review--state review) 'ready)
    (user-error "The change is not complete yet; wait, or stop it with C-c C-k"))
  (let ((parts (contexture-review--parts review)))
    (or (cl-find-if (lambda (part) (>= (overlay-end part) (point))) parts)
        (car parts))))

(defun contexture-review--apply (parts)
  "Put the new text of PARTS in place, as one change to undo.
Signal an error if the lines of one of them were edited."
  (dolist (part parts)
    (unless (equal (overlay-get part 'contexture-old)
                   (buffer-substring-no-properties (overlay-start part)
                                                   (overlay-end part)))
      (goto-char (overlay-start part))
      (user-error "You have edited these lines since the change was proposed; undo your edits, or reject the change")))
  (undo-boundary)
  (let ((group (prepare-change-group)))
    (atomic-change-group
      (dolist (part (reverse parts))
        (contexture-review--replace (overlay-start part) (overlay-end part)
                                   (overlay-get part 'contexture-new))))
    ;; `replace-buffer-contents' begins with a boundary.
    (undo-amalgamate-change-group group))
  (undo-boundary))

(defun contexture-review--replace (beg end text)
  "Replace the text from BEG to END with TEXT; keep markers and point."
  (let ((source (generate-new-buffer " *contexture replacement*")))
    (unwind-protect
        (progn
          (with-current-buffer source (insert text))
          (save-restriction
            (widen)
            (narrow-to-region beg end)
            ;; This keeps markers and point where the text is the same.
            (replace-buffer-contents source 1)))
      (kill-buffer source))))

(defun contexture-review--drop (review part)
  "Take PART out of REVIEW; end REVIEW if no part is left."
  (setf (contexture-review--parts review) (delq part (contexture-review--parts review)))
  (delete-overlay part)
  (if-let* ((left (length (contexture-review--parts review)))
            ((> left 0)))
      (progn
        (contexture-review--title review (concat (contexture--count left "change") " left"))
        (goto-char (overlay-start (contexture-review--part review))))
    (contexture-review--finish review (contexture-review--accepted review))))

(defun contexture-review--finish (review count)
  "End REVIEW, of which COUNT changes were accepted, and say so."
  (let ((place (copy-marker (overlay-start (contexture-review--place review)))))
    (contexture-review--end review)
    (setq contexture--appeared (float-time)) ; the same key may decide on the next one
    (if (zerop count)
        (contexture--message "Rejected the change")
      (contexture--message "Accepted %s in %s; save the buffer to keep %s, or undo"
                           (contexture--count count "change") (buffer-name)
                           (if (= count 1) "it" "them")))
    (contexture-review--tell review)
    (when (> count 0)
      (run-hook-with-args 'contexture-review-accepted-functions place))))

(defun contexture-review-accept (&optional ask)
  "Make the change that is proposed at point, or what is left of it.
If ASK is non-nil, as it is interactively, ask first if some of its lines
have not been shown."
  (interactive (progn (barf-if-buffer-read-only) '(t)))
  (let* ((review (contexture-review--here))
         (parts (and (contexture-review--part review) (contexture-review--parts review))))
    (when ask (contexture-review--check-seen review parts))
    (contexture-review--apply parts)
    (contexture-review--finish
     review (+ (length parts) (contexture-review--accepted review)))))

(defun contexture-review-reject ()
  "Drop the change that is proposed at point, or what is left of it.
Stop it if it is still coming."
  (interactive)
  (let* ((review (contexture-review--here))
         (accepted (contexture-review--accepted review))
         (cancel (and (eq (contexture-review--state review) 'coming)
                      (contexture-review--cancel review))))
    (if (> accepted 0)
        (contexture-review--finish review accepted)
      (contexture-review--end review)
      (when cancel (funcall cancel))
      (contexture--message "Rejected the change")
      (contexture-review--tell review))))

(defun contexture-review-accept-part (&optional ask)
  "Make the part of the proposed change at point, or the next one.
If ASK is non-nil, as it is interactively, ask first if some of its lines
have not been shown."
  (interactive (progn (barf-if-buffer-read-only) '(t)))
  (let* ((review (contexture-review--here))
         (part (contexture-review--part review)))
    (when ask (contexture-review--check-seen review (list part)))
    (contexture-review--apply (list part))
    (cl-incf (contexture-review--accepted review))
    (contexture-review--drop review part)))

(defun contexture-review-reject-part ()
  "Drop the part of the proposed change at point, or the next one."
  (interactive)
  (let ((review (contexture-review--here)))
    (contexture-review--drop review (contexture-review--part review))))

(defun contexture--next-place (overlays position back)
  "Return the place of the next of OVERLAYS after POSITION in this buffer.
After the last one here, it is the first one of another buffer.  With BACK,
return the place of the one before POSITION.  The value is a marker, or nil if
there is none."
  (let* ((places (mapcar (lambda (it)
                           (set-marker (make-marker) (overlay-start it) (overlay-buffer it)))
                         overlays))
         (in (lambda (buffer)
               (sort (cl-loop for place in places
                              when (eq (marker-buffer place) buffer) collect place)
                     #'<)))
         (mine (funcall in (current-buffer)))
         (other (cl-find-if-not (lambda (it) (memq it mine)) places)))
    (cond ((if back (cl-find-if (lambda (it) (< it position)) (reverse mine))
             (cl-find-if (lambda (it) (> it position)) mine)))
          (other (car (funcall in (marker-buffer other))))
          (t (car (if back (last mine) mine))))))

(defun contexture-review-next (&optional back)
  "Go to the next part of a proposed change, also in another buffer.
With BACK, go to the previous one."
  (interactive)
  (let ((parts (cl-loop for review in (contexture-review--open)
                        append (or (contexture-review--parts review)
                                   (list (contexture-review--place review))))))
    (contexture-review--go-to
     (or (contexture--next-place parts (point) back)
         (user-error "No change is proposed")))))

(defun contexture-review-previous ()
  "Go to the previous part of a proposed change, also in another buffer."
  (interactive)
  (contexture-review-next t))

(defun contexture-review-again (remark)
  "Drop the change that is proposed at point, and ask again with REMARK."
  (interactive (progn (contexture-review--here)
                      (list (contexture-mention--ask "Ask again, with the remark: "
                                                    'contexture-rewrite-history))))
  (let* ((review (contexture-review--here))
         (again (or (contexture-review--again review)
                    (user-error "This change cannot be asked for again; reject it, or edit the text yourself"))))
    (when (string-blank-p remark)
      (user-error "Say what should be different"))
    (funcall again remark)))

;;;; Ediff

(defvar contexture-conversation-compare-function #'contexture-review--compare-buffers
  "Function that shows a proposed change beside the buffer.
It is called with the buffer, a buffer with its proposed text, and a
function to call when the user is done, perhaps with the number of the
differences that the user did not visit.")

(defun contexture-review-ediff ()
  "Show the change that is proposed at point with Ediff.
There, \\`b' accepts one difference; after \\`q' you are asked about the
rest.  No file is saved."
  (interactive "*")
  (let* ((review (contexture-review--here))
         (place (progn (contexture-review--part review) (contexture-review--place review)))
         ;; Ediff replaces whole lines, so these have to be whole ones.
         (beg (copy-marker (overlay-start place)))
         (end (copy-marker (overlay-end place) t))
         (old (and (zerop (contexture-review--accepted review))
                   (buffer-substring-no-properties beg end)))
         (text (concat (contexture-review--before review) (contexture-review--text review)
                       (contexture-review--after review))))
    (contexture-review--end review)
    (let* ((buffer (current-buffer))
           (proposal (contexture-review--make-proposal beg end text))
           (done (lambda (&optional passed-by)
                   (unwind-protect
                       (contexture--with-live-buffer buffer
                         (contexture-review--decide beg end text old passed-by)
                         (contexture-review--tell review)
                         (unless (equal old (buffer-substring-no-properties beg end))
                           (run-hook-with-args 'contexture-review-accepted-functions beg)))
                     (when (buffer-live-p proposal) (kill-buffer proposal))))))
      (funcall contexture-conversation-compare-function buffer proposal done))))

(defun contexture-review--make-proposal (beg end text)
  "Return a copy of this buffer with TEXT in place of the text from BEG to END."
  (let ((mode major-mode)
        (whole (contexture--widened
                 (concat (buffer-substring-no-properties (point-min) beg)
                         text
                         (buffer-substring-no-properties end (point-max)))))
        (proposal (generate-new-buffer
                   (format "*contexture: proposal for %s*" (buffer-name)))))
    (with-current-buffer proposal
      (ignore-errors (contexture--enter-mode mode whole))
      (contexture--show-hidden)
      (set-buffer-modified-p nil)
      (setq buffer-read-only t))
    proposal))

(defvar ediff-current-difference)
(defvar ediff-number-of-differences)

(defun contexture-review--compare-buffers (buffer proposal done)
  "Show with Ediff how PROPOSAL differs from BUFFER, then call DONE.
Tell it how many differences the user did not visit: Ediff begins with none.
Restore the windows before that call."
  (let* ((windows (current-window-configuration))
         (gone-to nil) (passed-by 0)
         (after (lambda ()
                  (when (frame-live-p (window-configuration-frame windows))
                    (set-window-configuration windows))
                  (funcall done passed-by))))
    (with-current-buffer buffer (widen))
    (ediff-buffers
     buffer proposal
     (list (lambda ()
             (add-hook 'ediff-select-hook
                       (lambda () (cl-pushnew ediff-current-difference gone-to))
                       nil t)
             (add-hook 'ediff-quit-hook ; while the numbers are still there
                       (lambda ()
                         (setq passed-by (- ediff-number-of-differences (length gone-to))))
                       nil t)
             (add-hook 'ediff-quit-hook
                       (lambda () (contexture--later after))
                       t t))))))

(defun contexture-review--decide (beg end text old &optional passed-by)
  "Ask whether to put TEXT in place of BEG to END in this buffer, and do so.
If all of it was accepted in Ediff, TEXT is there already; then do not ask.
OLD is what was there, or nil if a part of the change was accepted before.
PASSED-BY is the number of differences that the user did not visit."
  (let ((now (buffer-substring-no-properties beg end)))
    (cond ((equal text now)
           (contexture--message "Applied all changes to %s" (buffer-name)))
          ((contexture--y-or-n-p
            (if (> (or passed-by 0) 0)
                (contexture--format "You have not visited %s; accept the changes to %s anyway? "
                                    (contexture--count passed-by "difference") (buffer-name))
              (contexture--format "Accept the changes to %s? " (buffer-name))))
           (undo-boundary)
           (contexture-review--replace beg end text)
           (undo-boundary)
           (contexture--message "Accepted the changes to %s, which is not saved; undo reverts them"
                                (buffer-name)))
          ((equal old now) (contexture--message "%s is unchanged" (buffer-name)))
          (t (contexture--message "Rejected the rest of the changes to %s" (buffer-name))))))

(provide 'contexture-code)
;;; contexture-code.el ends here
