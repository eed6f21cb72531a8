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

(defconst contexture-picture--most-kept 12000000
  "Maximum size of a file that is copied; the server takes no larger ones.")

(defcustom contexture-picture-height 120
  "Maximum height in pixels of the pictures shown below a question, or nil.
If nil, none are shown.  PNG and JPEG are shown, unless they are large."
  :type '(choice (const :tag "None" nil) natnum)
  :group 'contexture)

(defun contexture-picture--name (file)
  "Insert the name of FILE after an @, at point or at the end of the prompt.
A file from elsewhere than the project is copied."
  (let* ((file (if (or (file-in-directory-p file (contexture-mention--root))
                       (file-in-directory-p file contexture-mention--pictures))
                   (expand-file-name file)
                 (contexture-picture--save
                  (or (contexture-picture--bytes file contexture-picture--most-kept)
                      (contexture--user-error "%s is too large" (contexture--abbreviate file)))
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
        (when-let* ((images (contexture-picture--images files)))
          (let ((overlay (make-overlay (point-max) (point-max) nil t t)))
            (overlay-put overlay 'contexture-files files)
            (overlay-put overlay 'after-string (concat "\n" (mapconcat #'identity images " ")))
            (setq contexture-picture--shown overlay)))))))

;;; What Emacs decodes

;; A picture of a few kilobytes can take minutes and gigabytes to decode.  Causes
;; are its size, texts packed in it, and thousands of passes or frames.  So Emacs
;; gets only the bytes of which these functions know what they cost.

(defconst contexture-picture--most-bytes 3750000
  "Maximum size of a picture that is shown; the server takes no larger ones.")

(defconst contexture-picture--most-pixels 10000000
  "Maximum number of pixels of the pictures that are shown at once.")

(defconst contexture-picture--most-parts 4096
  "Maximum number of parts of a picture that is shown.")

(defconst contexture-picture--most-passes 16
  "Maximum number of passes in which a JPEG that is shown is drawn.")

(defun contexture-picture--images (files)
  "Return strings that show the pictures in FILES small.
Leave out what Emacs cannot show, or not at once."
  (let ((left contexture-picture--most-pixels))
    (cl-loop for file in (seq-uniq files)
             for (image . pixels) = (contexture-picture--small file left)
             when image
             do (cl-decf left pixels)
             and collect image)))

(defun contexture-picture--small (file most)
  "Return a string that shows FILE small, and the number of its pixels, as a pair.
Return nil if it has more than MOST pixels, or Emacs cannot show it.  FILE is
decoded as what its name says, and as nothing else.  Its content could make
Emacs run a program, as PostScript does, or read other files."
  (when-let* ((end (downcase (or (file-name-extension file) "")))
              (type (cdr (assoc end '(("png" . png) ("jpg" . jpeg) ("jpeg" . jpeg)))))
              ((image-type-available-p type))
              (data (contexture-picture--bytes file contexture-picture--most-bytes))
              (plain (if (eq type 'png) (contexture-picture--png data)
                       (contexture-picture--jpeg data)))
              ((<= 1 (cdr plain) most))
              (image (ignore-errors
                       (create-image (car plain) type t :max-height contexture-picture-height))))
    (cons (propertize " " 'display image
                      'help-echo (contexture--help (contexture--abbreviate file)))
          (cdr plain))))

(defun contexture-picture--bytes (file most)
  "Return the bytes of FILE, or nil if it has more than MOST or is no file here."
  (when-let* ((file (contexture--outside-file file))
              ((file-regular-p file)))
    (with-temp-buffer
      (set-buffer-multibyte nil)
      (and (ignore-errors (insert-file-contents-literally
                           file nil 0 (1+ most)))
           (<= (buffer-size) most)
           (buffer-string)))))

(defun contexture-picture--number (data at size)
  "Return the number in SIZE bytes of DATA, from AT on, the highest byte first."
  (cl-loop with number = 0
           for index from at below (+ at size)
           do (setq number (+ (* 256 number) (aref data index)))
           finally return number))

(defun contexture-picture--png (data)
  "Return the parts of DATA, a PNG, that are drawn, and the number of its pixels.
They are a pair, or nil if DATA is no PNG."
  (when (and (< 33 (length data))
             (string-prefix-p "\211PNG\r\n\032\n\0\0\0\rIHDR" data))
    (cl-loop with kept = (list (substring data 0 8)) and at = 8
             repeat contexture-picture--most-parts
             while (<= (+ at 12) (length data))
             do (let ((name (substring data (+ at 4) (+ at 8)))
                      (end (+ at 12 (contexture-picture--number data at 4))))
                  (when (and (member name '("IHDR" "PLTE" "tRNS" "IDAT" "IEND"))
                             (<= end (length data)))
                    (push (substring data at end) kept))
                  (setq at end))
             finally return (cons (apply #'concat (nreverse kept))
                                  (* (contexture-picture--number data 16 4)
                                     (contexture-picture--number data 20 4))))))

(defun contexture-picture--jpeg (data)
  "Return DATA, a JPEG, and the number of its pixels, as a pair.
Return nil if it is no JPEG, or is drawn in too many passes."
  (when (and (string-prefix-p "\377\330" data)
             (<= (cl-loop for at = 0 then (+ at 2)
                          while (setq at (string-search "\377\332" data at))
                          count t)
                 contexture-picture--most-passes))
    (cl-loop with at = 2
             repeat contexture-picture--most-parts
             while (and (<= (+ at 9) (length data)) (= #xff (aref data at)))
             do (let ((kind (aref data (1+ at))))
                  (cond ((memq kind '(#xc0 #xc1 #xc2))
                         (cl-return (cons data (* (contexture-picture--number data (+ at 5) 2)
                                                  (contexture-picture--number data (+ at 7) 2)))))
                        ((or (memq kind '(#xc4 #xdb #xdd #xfe)) (<= #xe0 kind #xef))
                         (cl-incf at (+ 2 (contexture-picture--number data (+ at 2) 2))))
                        (t (cl-return)))))))

(defun contexture-picture--set-up ()
  "Have this conversation take pictures that are dropped or yanked."
  (setq-local dnd-protocol-alist
              (cons '("^file:" . contexture-picture--drop) dnd-protocol-alist))
  (when (fboundp 'yank-media-handler)
    (yank-media-handler "image/.*" #'contexture-picture--yank)))

(provide 'contexture-picture)

;;; contexture-picture.el ends here
