;;; reference.el --- Write the reference of the manual  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Writes docs/contexture.inc, the reference of docs/contexture.texi: the keys, from
;; the keymaps of the package, and the options, faces and functions, from their
;; definitions.
;; Usage: emacs -Q --batch -L elisp --load scripts/reference.el --funcall contexture-reference-update

;;; Code:

(require 'cl-lib)
(require 'subr-x)

(require 'help-fns)

(defconst contexture-reference-file
  (expand-file-name "../docs/contexture.inc"
                    (file-name-directory (or load-file-name buffer-file-name)))
  "The reference, which the manual includes.")

(defconst contexture-reference-maps
  '((contexture-command-map "Everywhere, after your prefix")
    (contexture-slime-map "With SLIME, and in the same way with SLY, after C-c C-a")
    (contexture-preview-mode-map "The preview")
    (contexture-list-mode-map "The list")
    (contexture-list-edit-mode-map "Editing an item")
    (contexture-map-mode-map "The map of a project")
    (contexture-conversation-mode-map "A conversation")
    (contexture-conversation-link-map "A link of an answer")
    (contexture-conversation-context-map "The line with the items, above the prompt")
    (contexture-conversation-fold-map "The line of a use of a tool")
    (contexture-conversation-approval-map "A request to use a tool")
    (contexture-tools-question-mode-map "A request of an agent")
    (contexture-review-map "A proposed change")
    (contexture-remark-map "A remark of a review")
    (contexture-conversation-notes-mode-map "The notes")
    (contexture-conversation-transcript-mode-map "A transcript")
    (contexture-conversation-search-mode-map "Hits of a search")
    (contexture-dashboard-mode-map "The dashboard")
    (contexture-dashboard-heading-map "A heading of the dashboard")
    (contexture-explain-mode-map "Why each part was sent or not")
    (contexture-sessions-mode-map "Sessions of agents")
    (contexture-hub-mode-map "The hub")
    (contexture-embark-item-map "Embark, on an item")
    (contexture-embark-conversation-map "Embark, on a conversation")
    (contexture-doctor-mode-map "The doctor")
    (contexture-info-mode-map "About the server"))
  "The keymaps of the package that have a table, each with its heading.")

(defconst contexture-reference-same
  '(contexture-conversation-map contexture-lisp-map contexture-sly-map contexture-list--heading-map
    contexture-review--elsewhere-map contexture-mention-mode-map)
  "Keymaps without a table: their keys stand in another, or are those of another map.")

(defun contexture-reference-load ()
  "Load the package."
  (dolist (file (directory-files (file-name-directory (locate-library "contexture")) t
                                 "\\`contexture[a-z-]*\\.el\\'"))
    (unless (string-match-p "-ert\\|-autoloads" file)
      (require (intern (file-name-base file))))))

(defun contexture-reference-of (map &optional prefix)
  "Return (KEY . COMMAND) for each key of MAP that is bound to a command.
PREFIX is the keys before.  What MAP inherits is left out."
  (let (keys (parent (keymap-parent map)))
    (map-keymap-internal
     (lambda (event binding)
       (let ((binding (if (and (symbolp binding) (fboundp binding) (keymapp binding))
                          (symbol-function binding) binding))
             (sequence (vconcat prefix (vector event))))
         (cond ((memq event '(remap menu-bar tool-bar follow-link)))
               ((and parent (equal binding parent)))
               ((keymapp binding)
                (setq keys (append (contexture-reference-of binding sequence) keys)))
               ;; Embark's actions are functions.
               ((and binding (symbolp binding)
                     (or (commandp binding)
                         (string-prefix-p "contexture-embark-" (symbol-name binding)))
                     (not (memq binding '(undefined ignore))))
                (push (cons (replace-regexp-in-string
                             "\\_<ESC \\(<[a-z]+>\\|[^ ]\\)" "M-\\1" (key-description sequence))
                            binding)
                      keys)))))
     map)
    (sort (cl-remove-duplicates keys :test #'equal)
          (lambda (one other) (string< (car one) (car other))))))

;;;; Texinfo

(defun contexture-reference--text (text)
  "Return TEXT as Texinfo."
  (replace-regexp-in-string "[@{}]" "@\\&" text t))

(defun contexture-reference--sentence (doc &optional arguments)
  "Return the first sentence of DOC, a docstring, as Texinfo.
ARGUMENTS are the names of the function's arguments."
  (let* ((doc (replace-regexp-in-string "[ \t]*\n[ \t]*" "\n" (or doc "")))
         (end (or (string-match "\\.\\(?:  \\|\n\\|\\'\\)" doc) (length doc)))
         (text (concat (subst-char-in-string ?\n ?\s (substring doc 0 end)) "."))
         (case-fold-search nil))
    (setq text (contexture-reference--text (substring-no-properties text)))
    (setq text (replace-regexp-in-string "`\\([^']+\\)'" "@code{\\1}" text))
    (with-syntax-table (standard-syntax-table)
      (dolist (name arguments text)
        (setq text (replace-regexp-in-string (format "\\_<%s\\_>" (upcase name))
                                             (format "@var{%s}" name) text t))))))

(defun contexture-reference--public (kind test)
  "Return the public symbols of the package for which TEST holds, sorted by name.
KIND is how they are defined: `defun', `defvar' or `defface'."
  (let ((folder (file-name-directory (locate-library "contexture"))) symbols)
    (mapatoms (lambda (symbol)
                (when (and (string-match-p "\\`contexture-" (symbol-name symbol))
                           (not (string-match-p "--\\|-mode\\(?:-hook\\)?\\'" (symbol-name symbol)))
                           (funcall test symbol)
                           (file-in-directory-p (or (symbol-file symbol kind) "/") folder)
                           ;; The kit for tests has a manual of its own.
                           (not (string-search "-ert" (symbol-file symbol kind))))
                  (push symbol symbols))))
    (sort symbols #'string<)))

(defun contexture-reference--table (entries)
  "Return a table with ENTRIES, each (HEAD INDEX SYMBOL DOC ARGUMENTS)."
  (concat "@table @asis\n"
          (mapconcat (pcase-lambda (`(,head ,index ,symbol ,doc . ,arguments))
                       (format "@item %s\n@%sindex %s\n%s\n" head index symbol
                               (contexture-reference--sentence doc (car arguments))))
                     entries "")
          "@end table\n"))

;;;; Chapters

(defun contexture-reference-tables ()
  "Return the tables of keys."
  (mapconcat
   (pcase-lambda (`(,map ,heading))
     (concat "@heading " heading "\n\n"
             "@multitable @columnfractions .2 .8\n"
             (mapconcat
              (pcase-lambda (`(,key . ,command))
                (format "@item @kbd{%s} @tab @code{%s}\n"
                        (contexture-reference--text key) command))
              (contexture-reference-of (symbol-value map)) "")
             "@end multitable\n"))
   contexture-reference-maps "\n"))

(defun contexture-reference--words (text)
  "Return TEXT, words with `code', as Texinfo."
  (replace-regexp-in-string "`\\([^']+\\)'" "@code{\\1}" (contexture-reference--text text)))

(defun contexture-reference-kinds ()
  "Return the table of what is meant at point."
  (concat "@multitable @columnfractions .25 .45 .3\n"
          "@headitem Buffer @tab What is meant @tab What @kbd{F} fixes\n"
          (mapconcat
           (pcase-lambda (`(,_ ,_ ,buffers ,meant ,fixed))
             (mapconcat #'identity
                        (list "@item " (contexture-reference--words (contexture--capitalized buffers))
                              " @tab " (contexture-reference--words meant)
                              " @tab " (contexture-reference--words (or fixed "nothing, and says so"))
                              "\n")
                        ""))
           contexture-point-kinds "")
          "@item All others @tab the region, else the definition, section or block around point; "
          "for @kbd{a} else the buffer @tab the same\n"
          "@end multitable\n"))

(defun contexture-reference-offers (offered)
  "Return the table of what is OFFERED: (HEADING CONSTANT), of names with descriptions."
  (pcase-let ((`(,heading ,constant) offered))
    (concat "@heading " heading "\n\n@table @code\n"
            (mapconcat (pcase-lambda (`(,name . ,what))
                         (format "@item %s\n%s.\n" name
                                 (replace-regexp-in-string
                                  "[`]\\([^`]+\\)`" "@code{\\1}"
                                  (contexture-reference--text
                                   (contexture--capitalized (string-remove-suffix "." what))))))
                       (symbol-value constant) "")
            "@end table\n")))

(defun contexture-reference--default (symbol)
  "Return the default of SYMBOL, an option, as Texinfo."
  (let* ((value (eval (car (get symbol 'standard-value)) t))
         (text (prin1-to-string value)))
    (cond ((and (stringp value)
                (string-prefix-p (expand-file-name user-emacs-directory) (expand-file-name value)))
           "a file")
          ((and (consp value) (> (length text) 40)) "a list")
          (t (format "@code{%s}" (contexture-reference--text text))))))

(defun contexture-reference-options ()
  "Return the table of options."
  (contexture-reference--table
   (mapcar (lambda (symbol)
             (list (format "@code{%s} (%s)" symbol (contexture-reference--default symbol)) "v" symbol
                   (documentation-property symbol 'variable-documentation t)))
           (contexture-reference--public 'defvar (lambda (symbol) (get symbol 'standard-value))))))

(defun contexture-reference-faces ()
  "Return the table of faces."
  (contexture-reference--table
   (mapcar (lambda (face) (list (format "@code{%s}" face) "v" face (documentation-property face 'face-documentation t)))
           (contexture-reference--public 'defface #'facep))))

(defun contexture-reference--arguments (function)
  "Return the arguments of FUNCTION as its documentation names them, in lower case."
  (let* ((doc (documentation function t))
         (usage (or (car (help-split-fundoc doc function))
                    (help--make-usage-docstring function (help-function-arglist function t)))))
    (mapcar (lambda (argument)
              (downcase (symbol-name (if (consp argument) (car argument) argument))))
            (cdr (car (read-from-string usage))))))

(defun contexture-reference-functions ()
  "Return the table of functions that are no commands."
  (contexture-reference--table
   (mapcar (lambda (function)
             (let ((doc (documentation function t))
                   (arguments (contexture-reference--arguments function)))
               (list (format "@code{%s}"
                             (cons function
                                   (mapcar (lambda (argument)
                                             (intern (if (string-prefix-p "&" argument) argument
                                                       (format "@var{%s}" argument))))
                                           arguments)))
                     "f" function (or (cdr (help-split-fundoc doc function)) doc) arguments)))
           (contexture-reference--public
            'defun
            (lambda (symbol)
              (and (fboundp symbol) (not (cl-find-class symbol))
                   (functionp symbol) (not (commandp symbol))
                   ;; What a class and `cl-defstruct' define has no documentation of its own.
                   (not (string-match-p "-\\(?:child\\|list\\|review\\|connection\\)-p\\'"
                                        (symbol-name symbol)))
                   (not (string-prefix-p "contexture-embark-" (symbol-name symbol)))))))))

(defun contexture-reference-text ()
  "Return the reference, as Texinfo."
  (concat "@c Written by `make docs' from the package.\n"
          "@node Keys\n@unnumbered Keys\n\n" (contexture-reference-tables)
          "\n@node What is meant\n@unnumbered What is meant at point\n\n"
          "@kbd{C-c x a} adds it, @kbd{C-c x E} and @kbd{C-c x V} ask about it, and @kbd{C-c x F} has "
          "code fixed.\nWhere lines are marked or the region is active, that is all of them together.\n\n"
          (contexture-reference-kinds)
          "\n@node What the server offers\n@unnumbered What the server offers\n\n"
          (mapconcat #'contexture-reference-offers
                     '(("Formats in which contexts are rendered" contexture--formats)
                       ("Formats in which conversations are exported" contexture--exports)
                       ("What can choose the messages that are sent" contexture--strategies)
                       ("Tools that the server has for models" contexture--server-tools))
                     "\n")
          "\n@node Options\n@unnumbered Options and faces\n\n"
          "Each option with its default.  @kbd{C-h v} says more.\n\n"
          (contexture-reference-options)
          "\nThe faces:\n\n" (contexture-reference-faces)
          "\n@node Functions\n@unnumbered Functions\n\n"
          "What Lisp programs may call, beside the commands.  @kbd{C-h f} says more.\n\n"
          (contexture-reference-functions)))

(defun contexture-reference-written ()
  "Return the reference as it is written."
  (with-temp-buffer
    (insert-file-contents contexture-reference-file)
    (buffer-string)))

(defun contexture-reference-update ()
  "Write the reference, if it differs."
  (contexture-reference-load)
  (let ((text (contexture-reference-text)))
    (unless (and (file-exists-p contexture-reference-file)
                 (equal text (contexture-reference-written)))
      (with-temp-file contexture-reference-file (insert text)))))

(provide 'reference)
;;; reference.el ends here
