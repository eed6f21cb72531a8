;;; contexture-picture-tests.el --- Tests of pictures for a question  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A picture that is dropped, pasted, named or marked in Dired, up to the item that
;; the server makes of it.

;;; Code:

(require 'dired)
(require 'contexture-test-helper)
(require 'contexture-picture)
(require 'contexture-sources)

(defconst contexture-picture-tests--png
  (concat "\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\2\200\0\0\1\340\10\2\0\0\0\0\0\0\0")
  "The beginning of a PNG of 640 × 480 pixels, which is all that is read here.")

(defun contexture-picture-tests--file (name)
  "Write a picture to the file NAME; return its absolute name."
  (let ((coding-system-for-write 'no-conversion)
        (file (expand-file-name name)))
    (with-temp-file file
      (set-buffer-multibyte nil)
      (insert contexture-picture-tests--png))
    file))

(defmacro contexture-picture-tests--at-prompt (&rest body)
  "Run BODY in a buffer whose whole text is at the prompt, with a folder of its own."
  (declare (indent 0) (debug t))
  `(let* ((folder (file-name-as-directory (make-temp-file "pictures" t)))
          (contexture-mention--pictures (concat folder "kept/"))
          (default-directory (file-name-as-directory (concat folder "project"))))
     (make-directory default-directory)
     (unwind-protect
         (with-temp-buffer
           (setq-local contexture-conversation--input (point-min-marker)
                       major-mode 'contexture-conversation-mode)
           (cl-letf (((symbol-function 'contexture-mention--root) (lambda () default-directory)))
             ,@body))
       (delete-directory folder t))))

(ert-deftest contexture-picture-names-a-file-that-is-dropped ()
  (contexture-picture-tests--at-prompt
    (let ((inside (contexture-picture-tests--file "a shot.png")))
      (insert "Look:")
      (should (eq 'private (contexture-picture--drop (concat "file://" inside) 'copy)))
      (should (equal (format "Look: @\"%s\" " (abbreviate-file-name inside)) (buffer-string)))
      ;; A picture from elsewhere is copied, once.
      (erase-buffer)
      (let ((elsewhere (contexture-picture-tests--file "../other.PNG")))
        (dotimes (_ 2) (contexture-picture--drop (concat "file://" elsewhere) 'copy))
        (should (equal 1 (length (directory-files contexture-mention--pictures nil "png\\'"))))
        (should (string-match-p "kept/[0-9a-f]+\\.png" (buffer-string)))))
    ;; Another file is opened, as everywhere.
    (let ((opened nil))
      (cl-letf (((symbol-function 'dnd-open-local-file) (lambda (url _) (setq opened url))))
        (contexture-picture--drop "file:///x/notes.txt" 'copy))
      (should (equal "file:///x/notes.txt" opened)))))

(ert-deftest contexture-picture-paste-keeps-the-clipboard ()
  (contexture-picture-tests--at-prompt
    (cl-letf (((symbol-function 'gui-get-selection)
               (lambda (_ type) (and (eq type 'image/jpeg) contexture-picture-tests--png))))
      (contexture-picture-paste))
    (let ((file (car (directory-files contexture-mention--pictures t "jpg\\'"))))
      (should (equal (format "@%s " (abbreviate-file-name file)) (buffer-string)))
      (should (equal contexture-picture-tests--png
                     (with-temp-buffer
                       (set-buffer-multibyte nil)
                       (insert-file-contents-literally file)
                       (buffer-string)))))
    (cl-letf (((symbol-function 'gui-get-selection) #'ignore))
      (should-error (contexture-picture-paste) :type 'user-error))))

(ert-deftest contexture-picture-is-an-item-for-the-server ()
  (contexture-test-with-server
    (let ((file (contexture-picture-tests--file "shot.png"))
          (contexture-context "pictures"))
      (contexture-add-file file)
      (contexture-test-settle)
      (let* ((item (car (contexture-request 'list-items '(:manager "pictures"))))
             (picture (plist-get (plist-get item :metadata) :picture)))
        (should (equal "shot.png: png picture, 640 × 480 pixels, 33 bytes" (plist-get item :content)))
        ;; Patches of 28 pixels, since no model is configured.
        (should (equal 414 (plist-get item :tokens)))
        (should (equal 414 (contexture--tokens-to-send (list item))))
        (should (equal '(640 480) (list (plist-get picture :width) (plist-get picture :height))))))))

(ert-deftest contexture-picture-is-shown-as-what-its-name-says ()
  (let (types)
    (cl-letf (((symbol-function 'image-type-available-p) #'always)
              ((symbol-function 'create-image)
               (lambda (_file type &rest _) (push type types) '(image))))
      (dolist (name '("a.png" "a.JPG" "a.jpeg" "a.gif" "a.webp" "a.svg" "a.ps" "a.eps" "a.pdf"
                      "a.png.ps" "a" "png" ".png"))
        (contexture-picture--small (concat "/" name))))
    (should (equal (nreverse types) '(png jpeg jpeg gif webp)))))

(provide 'contexture-picture-tests)

;;; contexture-picture-tests.el ends here
