;;; keys.el --- Write the tables of keys of the manual  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Writes the chapter "Keys" of docs/contexture.texi, between its markers, from
;; the keymaps of the package.
;; Usage: emacs -Q --batch -L elisp --load scripts/keys.el --funcall contexture-keys-update

;;; Code:

(require 'cl-lib)
(require 'subr-x)

(defconst contexture-keys-manual
  (expand-file-name "../docs/contexture.texi"
                    (file-name-directory (or load-file-name buffer-file-name)))
  "The manual.")

(defconst contexture-keys-maps
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
    (contexture-embark-item-map "Embark, on an item")
    (contexture-embark-conversation-map "Embark, on a conversation")
    (contexture-doctor-mode-map "The doctor")
    (contexture-info-mode-map "About the server"))
  "The keymaps of the package that have a table, each with its heading.")

(defconst contexture-keys-same
  '(contexture-conversation-map contexture-lisp-map contexture-sly-map contexture-list--heading-map
    contexture-review--elsewhere-map contexture-mention-mode-map)
  "Keymaps without a table: their keys stand in another, or are those of another map.")

(defun contexture-keys-load ()
  "Load the package."
  (dolist (file (directory-files (file-name-directory (locate-library "contexture")) t
                                 "\\`contexture[a-z-]*\\.el\\'"))
    (unless (string-match-p "-ert\\|-autoloads" file)
      (require (intern (file-name-base file))))))

(defun contexture-keys-of (map &optional prefix)
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
                (setq keys (append (contexture-keys-of binding sequence) keys)))
               ((and binding (symbolp binding) (commandp binding)
                     (not (memq binding '(undefined ignore))))
                (push (cons (replace-regexp-in-string
                             "\\_<ESC \\(<[a-z]+>\\|[^ ]\\)" "M-\\1" (key-description sequence))
                            binding)
                      keys)))))
     map)
    (sort (cl-remove-duplicates keys :test #'equal)
          (lambda (one other) (string< (car one) (car other))))))

(defun contexture-keys--text (text)
  "Return TEXT as Texinfo."
  (replace-regexp-in-string "[@{}]" "@\\&" text t))

(defun contexture-keys-tables ()
  "Return the tables, as Texinfo."
  (mapconcat
   (pcase-lambda (`(,map ,heading))
     (concat "@heading " heading "\n\n"
             "@multitable @columnfractions .2 .8\n"
             (mapconcat
              (pcase-lambda (`(,key . ,command))
                (format "@item @kbd{%s} @tab @code{%s}\n" (contexture-keys--text key) command))
              (contexture-keys-of (symbol-value map)) "")
             "@end multitable\n"))
   contexture-keys-maps "\n"))

(defun contexture-keys-written ()
  "Go to the tables in this buffer, and return their place, a pair."
  (goto-char (point-min))
  (re-search-forward "^@c keys: begin\n")
  (let ((beg (point)))
    (re-search-forward "^@c keys: end$")
    (cons beg (match-beginning 0))))

(defun contexture-keys-update ()
  "Write the tables into the manual, if they differ."
  (contexture-keys-load)
  (with-temp-buffer
    (insert-file-contents contexture-keys-manual)
    (pcase-let ((`(,beg . ,end) (contexture-keys-written))
                (tables (contexture-keys-tables)))
      (unless (equal (buffer-substring beg end) tables)
        (delete-region beg end)
        (goto-char beg)
        (insert tables)
        (write-region nil nil contexture-keys-manual)))))

(provide 'keys)
;;; keys.el ends here
