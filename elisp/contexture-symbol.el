;;; contexture-symbol.el --- Add a symbol's definition  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-add-symbol' finds where a symbol is defined and adds that
;; text.  It tries xref, if the buffer's backend can answer without asking
;; the user for a tags table; then imenu; then, for symbols of Emacs Lisp,
;; Emacs's own records.  Buffers opened for the search are closed again.

;;; Code:

(require 'contexture)
(eval-when-compile (require 'subr-x))

(declare-function imenu--make-index-alist "imenu" (&optional noerror))
(declare-function imenu--subalist-p "imenu" (item))
(declare-function find-definition-noselect "find-func" (symbol type &optional file))
(declare-function xref-backend-definitions "xref" (backend identifier))
(declare-function xref-backend-identifier-at-point "xref" (backend))
(declare-function xref-backend-identifier-completion-table "xref" (backend))
(declare-function xref-find-backend "xref" ())
(declare-function xref-item-location "xref" (item) t)
(declare-function xref-item-summary "xref" (item) t)
(declare-function xref-location-marker "xref" (location))

(defvar find-function-C-source-directory)
(defvar imenu-auto-rescan)
(defvar tags-file-name)
(defvar tags-table-list)

;;;###autoload
(defun contexture-add-symbol (name)
  "Add the definition of the symbol called NAME to this buffer's context.
Interactively, that is the symbol at point, or one that you type."
  (interactive (list (contexture-symbol--read)))
  (when (or (null name) (string-empty-p name))
    (user-error "No symbol was given"))
  (let ((buffers (buffer-list))
        (enable-local-variables :safe)) ; a file opened for this asks nothing
    (unwind-protect
        (let ((marker (or (contexture-symbol--find name)
                          (user-error
                           (if (contexture-symbol--primitive-p name)
                               "%s is written in C, and its source is not on this machine"
                             "No definition of %s was found")
                           name))))
          (contexture--add (contexture-symbol--capture name marker)))
      (contexture-symbol--close-new buffers))))

(defun contexture-symbol--read ()
  "Read a symbol's name, the one at point by default."
  (let ((default (thing-at-point 'symbol t)))
    (completing-read (format-prompt "Add symbol" (contexture--visible default))
                     (contexture-symbol--completions)
                     nil nil nil nil default)))

(defun contexture-symbol--completions ()
  "Return a completion table of the symbols that this buffer knows."
  (or (when-let* ((backend (contexture-symbol--backend)))
        (ignore-errors (xref-backend-identifier-completion-table backend)))
      (mapcar #'car (contexture-symbol--imenu))
      obarray))

(defun contexture-symbol--find (name)
  "Return a marker where NAME is defined, or nil."
  (or (contexture-symbol--by-xref name)
      (cdr (assoc name (contexture-symbol--imenu)))
      (contexture-symbol--by-emacs name)))

(defun contexture-symbol--capture (name marker)
  "Return parameters that add the definition of NAME at MARKER."
  (let ((docstring (and (provided-mode-derived-p
                         (buffer-local-value 'major-mode (marker-buffer marker))
                         'emacs-lisp-mode)
                        (contexture-symbol--docstring name))))
    (with-current-buffer (marker-buffer marker)
      (save-excursion
        (save-restriction
          (widen)
          (goto-char marker)
          (let ((definition (contexture-defun-at-point)))
            (contexture--capture
             (or (plist-get definition :beg) (line-beginning-position))
             (or (plist-get definition :end) (line-end-position))
             :symbol
             :symbol name :symbol-kind (plist-get definition :kind)
             :docstring docstring)))))))

(defun contexture-symbol--primitive-p (name)
  "Return non-nil if NAME is an Emacs function or variable written in C."
  (when-let* ((symbol (intern-soft name)))
    (or (subr-primitive-p (symbol-function symbol))
        ;; Its documentation is in Emacs's DOC file, and no Lisp file defines it.
        (and (integerp (get symbol 'variable-documentation))
             (null (symbol-file symbol 'defvar))))))

(defun contexture-symbol--docstring (name)
  "Return the documentation of the Emacs Lisp symbol NAME, or nil."
  (when-let* ((symbol (intern-soft name)))
    (ignore-errors
      (if (fboundp symbol)
          (documentation symbol t)
        (documentation-property symbol 'variable-documentation t)))))

(defun contexture-symbol--close-new (buffers)
  "Kill the buffers that visit files and are not among BUFFERS."
  (dolist (buffer (buffer-list))
    (when (and (not (memq buffer buffers))
               (buffer-file-name buffer)
               (not (buffer-modified-p buffer)))
      (kill-buffer buffer))))

;;;; Where definitions are

(defun contexture-symbol--backend ()
  "Return the xref backend of this buffer if it asks no questions."
  (require 'xref)
  (let ((backend (xref-find-backend)))
    (unless (and (eq backend 'etags)
                 (not (bound-and-true-p tags-file-name))
                 (not (bound-and-true-p tags-table-list)))
      backend)))

(defun contexture-symbol--by-xref (name)
  "Return a marker where xref says that NAME is defined, or nil."
  (when-let* ((backend (contexture-symbol--backend)))
    (let ((identifier (if (equal name (thing-at-point 'symbol t))
                          (or (xref-backend-identifier-at-point backend) name)
                        name)))
      (when-let* ((items (ignore-errors
                           (xref-backend-definitions backend identifier))))
        (contexture-symbol--marker (contexture-symbol--choose items))))))

(defun contexture-symbol--choose (items)
  "Return one of the xref ITEMS, chosen by the user if there are several."
  (if (null (cdr items))
      (car items)
    (let ((choices (mapcar (lambda (item)
                             (cons (contexture--visible-candidate
                                    (substring-no-properties (xref-item-summary item)))
                                   item))
                           items)))
      (cdr (assoc (completing-read "Which definition: " choices nil t nil nil
                                   (caar choices))
                  choices)))))

(defun contexture-symbol--marker (item)
  "Return the marker of the xref ITEM, or nil if Emacs has no source.
Never let Emacs ask where its own C sources are."
  (require 'find-func)
  (let ((find-function-C-source-directory
         (or find-function-C-source-directory "/nonexistent")))
    (condition-case nil
        (xref-location-marker (xref-item-location item))
      (error nil))))

(defun contexture-symbol--imenu ()
  "Return an alist from the names in this buffer to their markers."
  (require 'imenu)
  (let ((imenu-auto-rescan t))
    (contexture-symbol--flatten
     (ignore-errors (imenu--make-index-alist t)))))

(defun contexture-symbol--flatten (index &optional parent)
  "Return the leaves of INDEX, an imenu alist, as (NAME . MARKER).
PARENT is the name of the entry that INDEX is below."
  (cl-loop for (label . place) in index
           for name = (contexture-symbol--label-name label parent)
           if (imenu--subalist-p (cons label place))
           append (contexture-symbol--flatten place name)
           else if (contexture-symbol--position place)
           collect (cons name (contexture-symbol--position place))))

(defun contexture-symbol--label-name (label parent)
  "Return the name that LABEL, an entry of imenu below PARENT, stands for.
Python's entries are \"helper (def)\" and \"Big (class)...\", and
\"*class definition*\" for the class itself."
  (let ((label (substring-no-properties label)))
    (if (and parent (string-match-p "\\`\\*.* definition\\*\\'" label))
        parent
      (replace-regexp-in-string "\\(?: ([^)]*)\\)?\\(?:\\.\\.\\.\\)?\\'" ""
                                label))))

(defun contexture-symbol--position (place)
  "Return PLACE, where an imenu entry points, as a marker, or nil."
  (cond ((markerp place) place)
        ((overlayp place) (copy-marker (overlay-start place)))
        ((and (integerp place) (> place 0)) (copy-marker place))
        ((consp place) (contexture-symbol--position (car place)))))

(defun contexture-symbol--by-emacs (name)
  "Return a marker where the Emacs Lisp symbol NAME is defined, or nil."
  (require 'find-func)
  (when-let* ((symbol (intern-soft name)))
    (let ((find-function-C-source-directory
           (or find-function-C-source-directory "/nonexistent")))
      (cl-loop for type in '(nil defvar defface)
               for place = (ignore-errors
                             (save-current-buffer
                               (find-definition-noselect symbol type)))
               when (cdr place)
               return (with-current-buffer (car place)
                        (copy-marker (cdr place)))))))

(provide 'contexture-symbol)
;;; contexture-symbol.el ends here
