;;; contexture-picture.el --- Pictures and PDFs for a question  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A picture or PDF is an item like any other: its file is added, or is named
;; after an @.  Here are the ways to name one in a conversation without a file's
;; name: by dropping it, or from the clipboard.  Graphical Emacsen show it small.

;;; Code:

(require 'cl-lib)
(require 'dnd)
(require 'contexture)
(require 'contexture-conversation-view)
(require 'contexture-mention)

(defconst contexture-picture--types
  '((image/png . "png") (image/jpeg . "jpg") (image/webp . "webp") (image/gif . "gif"))
  "Types of pictures in the clipboard, with the ends of their names.")

(defcustom contexture-picture-height 120
  "Maximum height in pixels of the pictures shown below a question, or nil.
If nil, none are shown."
  :type '(choice (const :tag "None" nil) natnum)
  :group 'contexture)

(defun contexture-picture--name (file)
  "Insert the name of FILE after an @, at point or at the end of the prompt.
A file from elsewhere than the project is copied."
  (let* ((file (if (or (file-in-directory-p file (contexture-mention--root))
                       (file-in-directory-p file contexture-mention--pictures))
                   (expand-file-name file)
                 (contexture-picture--save
                  (with-temp-buffer
                    (set-buffer-multibyte nil)
                    (insert-file-contents-literally file)
                    (buffer-string))
                  (downcase (file-name-extension file)))))
         (name (contexture-mention--quote (abbreviate-file-name file))))
    (unless name (contexture--user-error "No mention can name %s" (contexture--abbreviate file)))
    (when (< (point) contexture-conversation--input) (goto-char (point-max)))
    (unless (memq (char-before) '(nil ?\s ?\t ?\n)) (insert " "))
    (insert "@" name " ")))

(defun contexture-picture--save (data extension)
  "Write DATA, a picture in bytes, to a file that ends in EXTENSION.
Return its name, which is the same for the same picture."
  (let* ((bytes (if (multibyte-string-p data) (encode-coding-string data 'raw-text) data))
         (file (expand-file-name (format "%s.%s" (substring (secure-hash 'sha256 bytes) 0 16) extension)
                                 contexture-mention--pictures)))
    (unless (file-exists-p file)
      (make-directory contexture-mention--pictures t)
      (let ((coding-system-for-write 'no-conversion))
        (with-temp-file file
          (set-buffer-multibyte nil)
          (insert bytes))))
    file))

;;;###autoload
(defun contexture-picture-paste ()
  "Name the picture in the clipboard in the question at the prompt.
It is kept in a file of its own."
  (interactive)
  (unless (derived-mode-p 'contexture-conversation-mode)
    (contexture--user-error "Paste a picture in a conversation, at its prompt"))
  (cl-loop for (type . extension) in contexture-picture--types
           for data = (ignore-errors (gui-get-selection 'CLIPBOARD type))
           when data
           return (contexture-picture--name (contexture-picture--save data extension))
           finally (contexture--user-error "The clipboard has no picture")))

(defun contexture-picture--yank (type data)
  "Name DATA, a picture of TYPE that is yanked, in the question."
  (contexture-picture--name
   (contexture-picture--save data (or (alist-get type contexture-picture--types) "png"))))

(defun contexture-picture--drop (url action)
  "Name the file of URL, which is dropped, in the question.
For a file that is no picture, do what Emacs does elsewhere, with
ACTION."
  (let ((file (contexture--outside-file (dnd-get-local-file-name url))))
    (if (not (and file (contexture-sources--picture-p file) (file-regular-p file)))
        (dnd-open-local-file url action)
      (contexture-picture--name file)
      'private)))

(defvar-local contexture-picture--shown nil
  "Overlay that shows the pictures that the text at the prompt names.")

(defun contexture-picture--show ()
  "Show small what pictures the text at the prompt names."
  (when (and contexture-picture-height (display-images-p))
    (let* ((text (buffer-substring-no-properties contexture-conversation--input (point-max)))
           (files (and (string-search "@" text)
                       (cl-loop for (_ _ kind file) in (contexture-mention-in-string text)
                                when (and (eq kind 'file) (contexture-sources--picture-p file)
                                          (not (string-suffix-p ".pdf" file t)))
                                collect file))))
      (unless (equal files (and contexture-picture--shown
                                (overlay-get contexture-picture--shown 'contexture-files)))
        (when contexture-picture--shown (delete-overlay contexture-picture--shown))
        (setq contexture-picture--shown nil)
        (when-let* ((images (delq nil (mapcar #'contexture-picture--small files))))
          (let ((overlay (make-overlay (point-max) (point-max) nil t t)))
            (overlay-put overlay 'contexture-files files)
            (overlay-put overlay 'after-string (concat "\n" (mapconcat #'identity images " ")))
            (setq contexture-picture--shown overlay)))))))

(defun contexture-picture--small (file)
  "Return a string that shows FILE small, or nil if Emacs cannot.
FILE is read as what its name says, and as nothing else: its content could
make Emacs run a program, as PostScript does, or read other files."
  (when-let* ((end (downcase (or (file-name-extension file) "")))
              (type (intern (if (equal end "jpg") "jpeg" end)))
              ((memq type '(png jpeg gif webp)))
              ((image-type-available-p type))
              (image (ignore-errors
                       (create-image file type nil :max-height contexture-picture-height))))
    (propertize " " 'display image 'help-echo (contexture--abbreviate file))))

(defun contexture-picture--set-up ()
  "Have this conversation take pictures that are dropped or yanked."
  (setq-local dnd-protocol-alist
              (cons '("^file:" . contexture-picture--drop) dnd-protocol-alist))
  (when (fboundp 'yank-media-handler)
    (yank-media-handler "image/.*" #'contexture-picture--yank)))

(provide 'contexture-picture)

;;; contexture-picture.el ends here
