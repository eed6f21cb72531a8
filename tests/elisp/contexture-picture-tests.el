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

(defconst contexture-picture-tests--jpeg
  (concat "\377\330\377\340\0\4ab\377\302\0\13\10\1\340\2\200\1\1\21\0")
  "The beginning of a JPEG of 640 × 480 pixels, up to its passes.")

(defun contexture-picture-tests--write (name &rest bytes)
  "Write BYTES, strings, to the file NAME; return its absolute name."
  (let ((coding-system-for-write 'no-conversion)
        (file (expand-file-name name)))
    (with-temp-file file
      (set-buffer-multibyte nil)
      (mapc #'insert bytes))
    file))

(defun contexture-picture-tests--part (name data)
  "Return the part NAME of a PNG, which has DATA and no checksum."
  (concat (unibyte-string 0 0 (/ (length data) 256) (% (length data) 256)) name data "crc "))

(defmacro contexture-picture-tests--decoded (&rest body)
  "Run BODY in a folder of its own; return the types and data that Emacs would decode."
  (declare (indent 0) (debug t))
  `(contexture-picture-tests--at-prompt
     (let (decoded)
       (cl-letf (((symbol-function 'image-type-available-p) #'always)
                 ((symbol-function 'create-image)
                  (lambda (data type in-memory &rest _)
                    (should in-memory)
                    (push (cons type data) decoded)
                    '(image))))
         ,@body)
       (nreverse decoded))))

(ert-deftest contexture-picture-is-shown-as-what-its-name-says ()
  (should (equal '(png jpeg jpeg)
                 (mapcar #'car
                         (contexture-picture-tests--decoded
                           (dolist (name '("a.png" "a.JPG" "a.jpeg" "a.gif" "a.webp" "a.svg" "a.ps"
                                           "a.eps" "a.pdf" "a.png.ps" "a" "png" ".png"))
                             (contexture-picture--images
                              (list (contexture-picture-tests--write
                                     name (if (string-match-p "jp" (downcase name))
                                              contexture-picture-tests--jpeg
                                            (concat contexture-picture-tests--png "crc."))))))))))
  ;; Not as what it is.
  (should-not (contexture-picture-tests--decoded
                (contexture-picture--images
                 (list (contexture-picture-tests--write "a.jpg" contexture-picture-tests--png)
                       (contexture-picture-tests--write "a.png" contexture-picture-tests--jpeg)
                       (contexture-picture-tests--write "b.png" "%!PS-Adobe-3.0")
                       (contexture-picture-tests--write "c.png" ""))))))

(ert-deftest contexture-picture-is-decoded-only-if-that-is-cheap ()
  (let* ((head (substring contexture-picture-tests--png 0 16))
         (end (concat "\10\2\0\0\0crc " (contexture-picture-tests--part "IEND" "")))
         (png (concat head "\0\0\2\200\0\0\1\340" end))
         (pass "\377\332\0\10\1\1\0\0\77\0data"))
    ;; Texts and all else that is packed in a PNG, but is not drawn, are left out.
    (should (equal (list (cons 'png png))
                   (contexture-picture-tests--decoded
                     (contexture-picture--images
                      (list (contexture-picture-tests--write
                             "a.png" (substring png 0 -12)
                             (contexture-picture-tests--part "zTXt" (make-string 5000 ?z))
                             (contexture-picture-tests--part "iCCP" "profile")
                             (substring png -12)))))))
    ;; Many pixels, in one picture or in several together; none at all; very many passes.
    (should-not
     (contexture-picture-tests--decoded
       (contexture-picture--images
        (list (contexture-picture-tests--write "a.png" head "\0\0\43\50\0\0\43\50" end)
              (contexture-picture-tests--write "b.png" head "\177\377\377\377\0\0\0\1" end)
              (contexture-picture-tests--write "c.png" head "\0\0\0\0\0\0\1\1" end)
              (contexture-picture-tests--write
               "a.jpg" contexture-picture-tests--jpeg (apply #'concat (make-list 17 pass)))
              (contexture-picture-tests--write
               "b.jpg" "\377\330\377\302\0\13\10\377\377\377\377\1\1\21\0" pass)
              (contexture-picture-tests--write "c.jpg" "\377\330\377\340\377\377")
              (contexture-picture-tests--write "d.jpg" "\377\330" pass)))))
    (should (= 2 (length (contexture-picture-tests--decoded
                           (contexture-picture--images
                            (cl-loop for name in '("a.png" "b.png" "c.png" "a.png")
                                     collect (contexture-picture-tests--write
                                              name head "\0\0\10\0\0\0\10\0" end)))))))
    ;; Files that Emacs would read without end, or whole into its memory.
    (should-not
     (contexture-picture-tests--decoded
       (let ((pipe (expand-file-name "pipe.png"))
             (large (contexture-picture-tests--write "large.png" png)))
         (call-process "mkfifo" nil nil nil pipe)
         (call-process "truncate" nil nil nil "-s" "8G" large)
         (make-symbolic-link "/dev/zero" "zero.png")
         (with-timeout (5 (ert-fail "A pipe, a device or a large file was read"))
           (contexture-picture--images (list pipe large (expand-file-name "zero.png")
                                             "/ssh:localhost:/a.png" "/none/a.png")))
         (rename-file large "../large.png")
         (should-error (contexture-picture--drop
                        (concat "file://" (expand-file-name "../large.png")) 'copy)
                       :type 'user-error))))))

(provide 'contexture-picture-tests)

;;; contexture-picture-tests.el ends here
